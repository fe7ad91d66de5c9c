"""`assay capture` with Paddle."""

import re
import subprocess

from capture.programs import ASSAY, PADDLE, ROOT, calls, capture, with_api


def test_a_paddle_training_is_captured_and_judged(tmp_path):
    program = (ROOT / "tests" / "capture" / "paddle_model.py").read_text()
    done = capture(tmp_path, program, python=PADDLE, flags=["--summaries"])
    assert done.returncode == 0, done.stderr
    plain = subprocess.run([PADDLE, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == plain.stdout
    head, cases = calls(tmp_path)
    assert head["steps"] == 3 and head["framework"].startswith("paddle 3") and head["left_out"] == {}
    for name in (
        "conv2d",
        "batch_norm",
        "relu",
        "linear",
        "embedding",
        "layer_norm",
        "softmax",
        "cross_entropy",
    ):
        (note,) = with_api(cases, f"paddle.nn.functional.{name}").values()
        assert note["calls"] == 3 and note["steps"] == 3, name
    assert head["first_nan"] == {"case": 'paddle.log(Tensor([1], "float32"))', "step": 4, "input": False}
    assert cases[head["first_nan"]["case"]]["values"]["in0"]["min"] == -1
    (linear,) = with_api(cases, "paddle.nn.functional.linear").values()
    assert linear["at"][0][1] == "fc" and re.match(r"program\.py:\d+", linear["at"][0][0][0])
    command = [ASSAY, "blame", "corpus.txt", "-n1"]
    judged = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    count = len(cases)
    assert (
        "known faults of this build that every user has: paddle.nn.functional.cross_entropy" in judged.stdout
    )
    shown, _, rest = judged.stdout.partition("\n")
    assert re.match(r"the first NaN: step 4: paddle\.log\(.*\) at program\.py:\d+ made it$", shown), shown
    assert rest.startswith(f"no operator is to blame: {count} of {count} "), judged.stdout + judged.stderr
