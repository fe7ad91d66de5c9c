import shutil
import subprocess

import pytest
from tree import ASSAY, ROOT


@pytest.fixture
def api(tmp_path):
    """Runs `assay api` with PyTorch in both lanes."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")

    def run(cases, *flags, lane="torch", reference="torch", code=0):
        (tmp_path / "cases.txt").write_text("\n".join(cases) + "\n")
        lanes = f"--test-lane={lane}", f"--reference-lane={reference}"
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        command = [ASSAY, "api", "--api_config_file=cases.txt", "--log_dir=run", *lanes, *flags]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert code in (done.returncode, None), done.stdout + done.stderr

        def listed(outcome):
            return subprocess.check_output([ASSAY, "report", tmp_path / "run", "--list", outcome], text=True)

        return done.stdout + done.stderr, listed

    return run
