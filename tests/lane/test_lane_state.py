"""The settings that a lane restores after each case (assay.lane_state)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from assay.lane_state import LaneState

ROOT = Path(__file__).resolve().parents[2]
CHANGES = {
    "torch": """
torch.set_grad_enabled(False)
torch.set_default_dtype(torch.float64)
torch.set_autocast_enabled("cpu", True)
torch.use_deterministic_algorithms(True)
torch.set_num_threads(2)
torch.set_default_device("meta")
""",
    "paddle": """
paddle.set_grad_enabled(False)
paddle.set_default_dtype("float64")
paddle.set_flags({"FLAGS_check_nan_inf": True})
paddle.base.core.set_num_threads(2)
paddle.base.framework._dygraph_tracer()._amp_level = paddle.base.core.AmpLevel.O1
paddle.enable_static()
""",
}
RUN = """
import ctypes, importlib, json, sys
name, changes = sys.argv[1:]
framework = importlib.import_module(f"assay.frameworks.{name}_framework").create()
framework.start("cpu")
none = framework.state.restore()
exec(f"import {name}" + changes)
ctypes.CDLL("libm.so.6").fesetround(0x400)
print(json.dumps([none, framework.state.restore(), framework.state.restore()]))
"""


def test_what_differs_is_set_back_and_named():
    values = {"left": 1, "right": 2}
    state = LaneState(
        {name: (lambda n=name: values[n], lambda v, n=name: values.update({n: v})) for name in values}
    )
    assert state.restore() == []
    values["right"] = 7
    assert state.restore() == ["right"]
    assert values == {"left": 1, "right": 2}
    values["left"] = 3
    state.learn()
    assert state.restore() == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_framework_restores_all_that_a_case_may_change(name):
    python = ROOT / ".venv" / name / "bin/python"
    if not python.exists():
        pytest.skip(f"{name} is not installed: make build")
    done = subprocess.run(
        [python, "-c", RUN, name, CHANGES[name]],
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "HOME": "/"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    before, changed, after = json.loads(done.stdout.splitlines()[-1])
    assert before == after == []
    assert len(changed) == CHANGES[name].count("\n"), changed
