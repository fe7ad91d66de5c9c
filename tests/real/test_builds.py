"""Builds of real frameworks: a run belongs to one, and a name that it lacks is no case."""

import subprocess

import pytest
from tree import ASSAY, ROOT

pytestmark = pytest.mark.slow

RELU = 'paddle.nn.functional.relu(Tensor([4, 5], "float32"))'
SETTINGS = """version = 1
[frameworks.paddle]
environment = ["PYTHONPATH={overlay}"]
"""


@pytest.fixture
def api(tmp_path):
    """Runs `assay api` with Paddle under an overlay whose text is given."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "paddle").exists():
        pytest.skip("Paddle or assay is not there: make build")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (tmp_path / "assay.toml").write_text(SETTINGS.format(overlay=overlay))

    def run(text, case, *flags):
        (overlay / "sitecustomize.py").write_text(text)
        command = [ASSAY, "api", f"--api_config={case}", "--num_workers_per_gpu=1", *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_run_is_resumed_with_its_build_only(api, tmp_path):
    code, said = api("", RELU, "--log_dir=run", "--values=usual")
    assert code == 0, said
    code, said = api("", RELU, "--log_dir=run", "--values=usual")
    assert code == 0, said
    assert "0 cases to run" in said
    code, said = api("rebuilt = True\n", RELU, "--log_dir=run", "--values=usual")
    assert code == 5, said
    assert "another build of paddle. Then: 3.3.1, commit " in said
    assert "--rerun" in said
    assert not [line for line in said.splitlines() if "Traceback" in line]
    code, said = api("rebuilt = True\n", RELU, "--log_dir=run", "--values=usual", "--rerun")
    assert code == 0, said
    assert "1 case to run" in said
    code, said = api("rebuilt = True\n", RELU, "--log_dir=run", "--values=usual")
    assert code == 0, said
    code, said = api("", RELU, "--log_dir=other", "--values=usual")
    assert code == 0, said


@pytest.mark.parametrize(
    "case, hint",
    [
        (
            'paddle.nn.functional.rleu(Tensor([4], "float32"))',
            "paddle 3.3.1 has no rleu (paddle.nn.functional.rleu); did you mean relu?",
        ),
        (
            'paddle.nn.functonal.relu(Tensor([4], "float32"))',
            "nn.functonal has none; did you mean nn.functional?",
        ),
        ('paddle.Tensor.sqeeze(Tensor([4], "float32"))', "did you mean squeeze?"),
        ('paddle.wholly_unknown_thing(Tensor([4], "float32"))', "paddle 3.3.1 has no wholly_unknown_thing"),
    ],
)
def test_a_name_that_the_build_lacks_is_invalid(api, case, hint):
    code, said = api("", case, "--log_dir=run", "--values=usual")
    assert code == 1, said
    assert hint in said
    assert "invalid" in said
