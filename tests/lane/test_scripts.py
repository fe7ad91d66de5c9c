"""The scripts for people: what is called in them, and what a run's database cannot put into them."""

import ast
import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("assay_native", reason="build the target assay_native_module")

from assay.scripts.issue import issue
from assay.scripts.repro import repro
from assay.wire import Fields


def script_of(case, backward=True, **properties):
    nothing = {"case": case, "shown": None, "outputs": [], "properties": properties}
    text = repro(facts(**nothing, comment=[], seed=0, backward=backward, fault__raises=False))
    ast.parse(text)
    return text


def test_arguments_are_python_literals():
    script = script_of(
        'paddle.f(Tensor([2], "float32"), list[1, -2.0, 1e30], tuple(True,), tuple(), slice(None, '
        'Tensor([1], "int64"), -1), Ellipsis, nan, -math.inf, complex(0.5, -2.0), '
        '123456789012345678901234567890, Dtype(bfloat16), type(int), name="a\\"b\\\\\\n\'", other=None)'
    )
    assert (
        "result = paddle.f(x0, [1, -2.0, 1e+30], (True,), (), slice(None, x1, -1), ..., "
        'float("nan"), float("-inf"), complex(0.5, -2.0), 123456789012345678901234567890, paddle.bfloat16, '
        'paddle.int64, name="a\\"b\\\\\\n\'", other=None)\n'
    ) in script
    assert 'x0 = load("x0.bin", paddle.float32, [2])\nx0.stop_gradient = False\n' in script
    assert "x1.stop_gradient" not in script  # an integer has no gradient


def test_the_same_tensor_again_is_the_same_name():
    script = script_of('paddle.equal_(Tensor([2], "float32"), y=Tensor#1)')
    assert "paddle.equal_(x0, y=x0)\nresult = x0" in script
    assert "leaves = [x0]\n" in script


def test_in_place_calls_work_on_copies():
    script = script_of('paddle.Tensor.__setitem__(Tensor([2], "float32"), 0, 1.0)')
    assert "paddle.Tensor.__setitem__(x0, 0, 1.0)\nresult = x0" in script
    assert "x0, = map(paddle.assign" in script_of('paddle.abs_(Tensor([2], "float32"))')
    assert "paddle.assign, leaves" not in script_of('paddle.abs(Tensor([2], "float32"))')
    invert = script_of('paddle.Tensor.__invert__(Tensor([2], "int8"))')
    assert "result = paddle.Tensor.__invert__(x0)" in invert
    assert "paddle.grad" not in script_of("paddle.abs(1)", backward=False)


def test_layers_are_made_and_called():
    script = script_of('paddle.nn.Linear(3, out_features=2)(Tensor([4, 3], "float32"))')
    assert "result = paddle.nn.Linear(3, out_features=2)(x0)\n" in script


def test_any_text_is_one_string_of_python():
    text = 'a"""\\\n#\'\x01\x7f\u2028{0}%s'
    source = script_of(f"paddle.f({json.dumps(text, ensure_ascii=False)})".replace("\\u0001", "\\x01"))
    [call] = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
              and ast.unparse(node.func) == "paddle.f"]  # fmt: skip
    assert ast.literal_eval(call.args[0]) == text


def facts(**changes):
    """Of torch.add(x0, 1) that gives 2.5 where 2.0 is right."""
    fault = {
        "outcome": "mismatch", "values": "usual", "gradient": False, "leaf": "", "compares": "value",
        "phase": "", "raises": False, "lane": "", "by_truth": False,
    }  # fmt: skip
    shown = {
        "place": 0, "element": True, "index": 1, "right": "2.0", "by_reference": "2.0", "apart": 0.5,
        "equality": "value", "lost": False,
        "right_side": {"kind": "tensor", "dtype": "float32", "shape": [2]},
    }  # fmt: skip
    lane = {"framework": "torch", "lane": "torch", "device": "cpu", "execution": "eager", "functions": "own"}
    whole = {
        "do": "issue", "case": 'torch.add(Tensor([2], "float32"), 1)', "role": "test", "build": "2.13.0",
        "properties": {f"test.{key}": value for key, value in lane.items()}, "unknown": "",
        "limit": 20, "run": False, "fault": fault, "shown": shown, "tensors": [["0.5", "1.0"]],
        "outputs": [], "message": "differs",
        "rerun": "assay api", "finding": {
            "api": "torch.add", "outcome": "mismatch", "where": "result", "how": "value", "cases": 1,
            "circumstances": "float32",
        },
    }  # fmt: skip
    for path, value in changes.items():
        *into, key = path.split("__")
        place = whole
        for part in into:
            place = place[part]
        place[key] = value
    return json.loads(json.dumps(whole), object_hook=Fields)


def test_a_script_compares_the_element_that_shows_the_fault():
    answer = issue(facts())
    assert answer["why"] == ""
    assert answer["script"] == (
        "import sys\n\nimport torch  # 2.13.0\n\n"
        "x0 = torch.tensor([0.5, 1.0], dtype=torch.float32)\n"
        "result = torch.add(x0, 1)\n"
        "got = result.flatten()[1].item()\nexpected = 2.0\n"
        'print("got     ", got)\nprint("expected", expected)\n'
        "sys.exit(not abs(got - expected) <= 0.25)\n"
    )
    assert answer["text"].startswith(
        "# torch.add: mismatch, result: value\n\nPyTorch 2.13.0, device cpu; found"
    )


def test_a_layer_is_compared_with_itself_in_float64():
    made = 'torch.nn.MultiheadAttention(8, 2)(Tensor([2], "float32"), Tensor([2], "float32"))'
    tensors = [["0.5", "1.0"]] * 2
    answer = issue(facts(case=made, tensors=tensors, fault__gradient=True, shown__place=3))
    assert answer["why"] == ""
    ast.parse(answer["script"])
    assert "layer = torch.nn.MultiheadAttention(8, 2)\n" in answer["script"]
    assert "    result = layer(x0, x1)\n" in answer["script"]
    assert "[x0, x1, *parameters]" in answer["script"]
    assert "    return gradients[3].flatten()[1].item()\n" in answer["script"]
    assert "expected = call(copy.deepcopy(layer).double(), wide(x0), wide(x1))\n" in answer["script"]


def test_a_case_with_its_inputs_in_files_compares_the_same():
    script = repro(facts(comment=["case 1"], seed=7, backward=True))
    ast.parse(script)
    lines = 'x0 = load("x0.bin", torch.float32, [2])\nresult = torch.add(x0, 1)\n'
    assert f"{lines}got = result.flatten()[1].item()\nexpected = 2.0\n" in script
    assert script.endswith("sys.exit(not abs(got - expected) <= 0.25)\n")
    assert "# case 1\n\nimport pathlib\nimport sys\n\nimport torch\n" in script


def test_what_has_no_script_says_why():
    assert issue(facts(shown__element=False))["why"] == "one element does not show it"
    layer = facts(case='torch.optim.SGD()(Tensor([1, 2], "float32"), Tensor([1, 2], "float32"))')
    assert "There is no short script: the case is a layer" in issue(layer)["text"]
    assert issue(facts(unknown="the case's tensors have more than 256 elements"))["script"] == ""


OUTPUT = {"path": "); evil(", "dtype": "float32", "shape": [1], "numbers": ["1.0"]}


@pytest.mark.parametrize(
    "change",
    [
        {"build": "2\nimport os"},
        {"properties__test.modules": "os; evil:good\nevil"},
        {"properties__test.framework": "torch\nevil"},
        {"fault__leaf": "[0]; evil"},
        {"fault__gradient": True, "outputs": [OUTPUT]},
    ],
)
def test_facts_of_a_foreign_database_are_no_code(change):
    script = issue(facts(**change))["script"]
    assert "evil" not in ast.unparse(ast.parse(script)) and "import os" not in ast.unparse(ast.parse(script))


def test_a_script_of_a_name_that_no_lane_may_call_is_not_run(tmp_path, root):
    """A run.db from elsewhere may name anything."""
    case = 'paddle.abs(Tensor([2], "float32"))'
    requests = [
        facts(finding__api=api, run=True, case=case, **{"properties__test.framework": "paddle"})
        for api in ("paddle.utils.run_check", "paddle.hub.load", "paddle.nn.functional._private")
    ]
    (tmp_path / "paddle.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    path = os.pathsep.join([str(tmp_path), str(root / "python"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "assay.scripts"],
        input=json.dumps({"v": 1, "requests": requests}),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    for request, answer in zip(requests, json.loads(done.stdout)["answers"], strict=True):
        assert f"assay did not run the script: {request.finding.api}" in answer["text"]
    assert not (tmp_path / "ran").exists()


def test_a_broken_request_does_not_spoil_the_others(root):
    good = facts(do="repro", case="paddle.abs(1)", comment=[], shown=None)
    broken = {**good, "case": "paddle.abs("}
    done = subprocess.run(
        [sys.executable, "-m", "assay.scripts"],
        input=json.dumps({"v": 1, "requests": [broken, {**good, "seed": 1, "backward": False}]}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "python"), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = json.loads(done.stdout)["answers"]
    assert "error" in first and "paddle.seed(1)" in second["script"]
