"""Each value regime reaches the framework: a call gets other bytes or strides than under usual values."""

import pathlib
import subprocess

import pytest
from assay.shared import REGIMES

ROOT = pathlib.Path(__file__).parents[2]
ASSAY = ROOT / "build/release/bin/assay"
# A sum is judged under every regime; `constant` wants long ones.
CASE = '{0}.sum(Tensor([80, 70], "float32"))'


@pytest.fixture
def given(tmp_path):
    """What the framework's calls get under a regime."""
    if not ASSAY.exists() or not (ROOT / ".venv/torch").exists():
        pytest.skip("a framework or assay is not there: make build")

    def run(framework, case, regime):
        (tmp_path / "assay.toml").write_text(
            f"version = 1\n[frameworks.{framework}]\n"
            'environment = ["ASSAY_FRAMEWORK_MODULE=recording_framework", '
            f'"PYTHONPATH={ROOT / "tests/real"}", "RECORD_TO={tmp_path / "noted"}"]\n'
        )
        (tmp_path / "noted").write_text("")
        lanes = [f"--test-lane={framework}", "--reference-lane=torch"]
        command = [ASSAY, "api", f"--api_config={case.format(framework)}", f"--values={regime}", *lanes]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return set((tmp_path / "noted").read_text().splitlines())

    return run


@pytest.mark.parametrize("framework", ["paddle", "torch"])
@pytest.mark.parametrize("regime", [regime for regime in REGIMES if regime != "usual"])
def test_a_call_gets_other_bytes_or_strides(given, framework, regime):
    other = given(framework, CASE, regime)
    assert other and not other <= given(framework, CASE, "usual")


@pytest.mark.parametrize("framework", ["paddle", "torch"])
@pytest.mark.parametrize("shape", ["[1, 5]", "[5, 1]", "[1, 1, 6]"])
def test_a_tensor_with_one_row_is_not_contiguous_under_layout(given, framework, shape):
    case = f'{{0}}.abs(Tensor({shape}, "float32"))'
    other = given(framework, case, "layout")
    assert other and not other <= given(framework, case, "usual")
