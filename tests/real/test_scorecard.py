"""`assay report --scorecard`: which of PyTorch's operators a run judges."""

import base64
import gzip
import json
import re
import subprocess

import pytest
from tree import ASSAY, ROOT

BACK_END = """
import torch

library = torch.library.Library("aten", "IMPL")
library.impl("asinh", lambda x: x.double().log1p().to(x.dtype), "CPU")
"""
CASES = [
    'torch.asinh(Tensor([40], "float32"))',
    'torch.ops.aten.add.Tensor(Tensor([4], "bfloat16"), Tensor([4], "bfloat16"))',
    'torch.nn.functional.layer_norm(Tensor([2, 8], "float32"), [8])',
    'torch.acos(Tensor([4], "float8_e5m2"))',
]


@pytest.fixture(name="assay")
def fixture_assay(tmp_path):
    """A function that runs assay in an empty folder, and returns (exit code, output)."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")

    def assay(*words):
        done = subprocess.run([ASSAY, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return assay


@pytest.mark.slow
def test_operators_are_counted_by_dtype_and_group_and_compared(assay, tmp_path):
    (tmp_path / "back_end.py").write_text(BACK_END)
    (tmp_path / "cases.txt").write_text("\n".join(CASES) + "\n")
    (tmp_path / "assay.toml").write_text(
        'version = 1\n[lanes.mine]\nframework = "torch"\nmodules = ["back_end"]\n'
        'environment = ["PYTHONPATH=."]\n'
    )
    flags = ("--values=usual", "-n", "1", "-q")
    assert assay("api", "cases.txt", "--log_dir=before", *flags)[0] == 0
    assert assay("api", "cases.txt", "--log_dir=now", "--test-lane=mine", *flags)[0] == 1
    flags = ("--scorecard", "--against=before", "--html=page.html", "--format=markdown")
    code, output = assay("report", "now", *flags)
    assert code == 1 and "\nwrong: aten::asinh (float32)" in output and "| operators " in output, output
    assert "\nchanged: aten::asinh float32: right before, wrong now" in output
    packed = re.search('id="data">([^<]*)<', (tmp_path / "page.html").read_text())[1]
    assert json.loads(gzip.decompress(base64.b64decode(packed)))["scorecard"][0][2] == 1
    code, output = assay("report", "now", "--scorecard", "--format=json")
    card = json.loads(output)
    assert card["operators"]["aten::add.Tensor"] == {"bfloat16": "right"}
    assert card["operators"]["aten::native_layer_norm"] == {"float32": "right"}
    assert card["operators"]["aten::acos"] == {"float8_e5m2": "no kernel"}
    assert card["total"]["no case"] > 2500 and card["total"]["wrong"] == 1
    assert card["groups"]["arithmetic"]["right"] == 1 and card["dtypes"]["float32"]["wrong"] == 1


def test_a_run_of_paddle_has_none(assay, tmp_path):
    (tmp_path / "cases.txt").write_text('paddle.abs(Tensor([4], "float32"))\n')
    assay("api", "cases.txt", "--log_dir=run", "--test-lane=torch", "-q")
    code, output = assay("report", "run", "--scorecard")
    assert code == 2 and "--scorecard counts PyTorch's operators" in output, output
