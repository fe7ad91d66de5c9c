"""What `assay api` and `assay report` show on a terminal: a pseudo-terminal of the kernel."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASSAY = ROOT / "build/release/bin/assay"
WIDTH = 60
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SETTINGS = """version = 1
[frameworks.{}]
python = "python3"
environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={}"]
"""
CASES = ['paddle.fake.wrong(Tensor([3], "float32"))', 'paddle.fake.echo(Tensor([3], "float32"))']

pytestmark = pytest.mark.skipif(not ASSAY.exists(), reason="assay is not built: make build")


@pytest.fixture
def folder(tmp_path):
    fake = ROOT / "tests/engine/fake"
    tables = SETTINGS.format("paddle", fake) + SETTINGS.format("torch", fake).partition("\n")[2]
    (tmp_path / "assay.toml").write_text(tables)
    (tmp_path / "cases.txt").write_text("\n".join(CASES) + "\n")
    return tmp_path


def shown(folder, *words, **variables):
    """All that the command writes to a terminal of WIDTH columns."""
    master, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    environment |= {"TERM": "xterm", **variables}
    child = subprocess.Popen([ASSAY, *words], cwd=folder, env=environment, stdout=side, stderr=side)
    os.close(side)
    text = b""
    try:
        while chunk := os.read(master, 4096):
            text += chunk
    except OSError:  # the other side is closed
        pass
    os.close(master)
    child.wait(60)
    return text.decode().replace("\r\n", "\n")


def test_lines_fit_the_terminal_and_outcomes_have_colour(folder):
    run = shown(folder, "api", "--test_cpu=True", "--api_config_file=cases.txt", "--log_dir=run")
    assert "\x1b[31mmismatch" in run and "\x1b[32mpass" in run
    assert re.search(r"2 of 2 cases, .*1 failed", run)
    assert "\x1b[31mfails\x1b[0m: 1 of 2 cases failed: 1" in run
    # The status line is written over itself, so it must not take two lines.
    statuses = [part for part in re.split(r"\r\x1b\[K|\n", run) if re.match(r"\[ *\d+%\]", part)]
    assert statuses and all(len(COLOUR.sub("", status)) <= WIDTH for status in statuses)

    report = shown(folder, "report", "run")
    lines = COLOUR.sub("", report).splitlines()
    wide = [line for line in lines if len(line) > WIDTH]
    # Cases, commands and the table of APIs stay whole.
    assert all("paddle.fake" in line or "report run --json" in line or "outcomes" in line for line in wide)
    assert lines[-1] == "fails: 1 of 2 cases failed: 1 mismatch"


def test_no_color_and_a_pipe_have_no_colour(folder):
    run = ["api", "--test_cpu=True", "--api_config_file=cases.txt", "--log_dir=run"]
    assert not COLOUR.search(shown(folder, *run, NO_COLOR="1"))
    piped = subprocess.run([ASSAY, "report", "run"], cwd=folder, capture_output=True, text=True)
    assert piped.returncode == 0 and not COLOUR.search(piped.stdout)
    assert "\x1b[31m" in shown(folder, "report", "run")
