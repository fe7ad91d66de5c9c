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
        found = with_api(cases, f"paddle.nn.functional.{name}").values()
        (note,) = (each for each in found if "compiled" not in each)  # of to_static
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


STATIC = """
import numpy
import paddle

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.head = paddle.nn.Linear(8, 4)

    def forward(self, x):
        y = self.head(x) * 2
        if x.shape[0] > 2:
            y = paddle.tanh(y)
        return y

net = paddle.jit.to_static(Net(), full_graph=True)
for _ in range(3):
    net(paddle.ones([3, 8]))
paddle.enable_static()
program = paddle.static.Program()
with paddle.static.program_guard(program):
    known = paddle.exp(paddle.static.data("known", [5]))
with paddle.static.program_guard(paddle.static.Program()):
    paddle.sin(paddle.static.data("later", [None, 5]))
result = paddle.static.Executor().run(program, feed={"known": numpy.ones(5, "float32")}, fetch_list=[known])
assert abs(result[0][0] - numpy.e) < 1e-6
"""


def test_calls_in_static_graphs_are_captured(tmp_path):
    done = capture(tmp_path, STATIC, python=PADDLE, flags=["--summaries"])
    assert done.returncode == 0, done.stderr
    head, cases = calls(tmp_path)
    inside = {case: note for case, note in cases.items() if note.get("compiled")}
    assert {
        'paddle.Tensor.__mul__(Tensor([3, 4], "float32"), 2)',
        'paddle.tanh(Tensor([3, 4], "float32"))',
        'paddle.exp(Tensor([5], "float32"))',
    } <= inside.keys()
    (linear,) = with_api(inside, "paddle.nn.functional.linear").values()
    assert linear["calls"] == 1 and linear["at"][0][:2] == [["program.py:18"], "head"]
    assert head["left_out"] == {"paddle.sin: a size that only the run of the graph knows": 1}
    assert with_api(cases, "paddle.ones") and not with_api(inside, "paddle.ones")
