"""Runs of `assay api` whose frameworks are fakes."""

import subprocess
import sys

from tree import ASSAY, ROOT

SETTINGS = """version = 1
[frameworks.paddle]
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={fake}"]
[frameworks.torch]
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={fake}"]
"""


class Run:
    """A run of fake frameworks in a folder."""

    def __init__(self, folder):
        self.folder = folder
        fake = ROOT / "tests" / "engine" / "fake"
        (folder / "assay.toml").write_text(SETTINGS.format(python=sys.executable, fake=fake))

    def words(self, cases, run):
        (self.folder / "cases.txt").write_text("\n".join(cases) + "\n")
        words = ["--api_config_file=cases.txt", f"--log_dir={run}", "--num_gpus=0", "--num_workers_per_gpu=2"]
        return [ASSAY, "api", *words]

    def go(self, apis, size, run="run"):
        cases = [f'paddle.fake.{api}(Tensor([{size + i}], "float32"))' for i, api in enumerate(apis)]
        done = subprocess.run(
            self.words(cases, run), cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
