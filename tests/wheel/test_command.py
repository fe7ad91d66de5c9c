"""What stands around the program: ``python -m assay``, completion for bash, the page for man."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from tree import ASSAY, ROOT

pytestmark = pytest.mark.skipif(not ASSAY.exists(), reason="assay is not built: make build")


def output_of(*command, **options):
    """What a command that succeeds prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, **options).stdout


def test_python_m_assay_is_the_program():
    in_python = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    said = output_of(sys.executable, "-m", "assay", "--version", env=in_python)
    assert said == output_of(ASSAY, "--version")
    wrong = subprocess.run(
        [sys.executable, "-m", "assay", "no-such-verb"], env=in_python, capture_output=True, timeout=60
    )
    assert wrong.returncode == 2


@pytest.fixture
def doctor(tmp_path):
    """Calls `python -m assay doctor` of a copy that has no environments of its own."""
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns("__pycache__"))
    for folder, file in {"bin": ASSAY, "lib": ROOT / "build/release/lib/assay_native.abi3.so"}.items():
        (tmp_path / folder).mkdir()
        shutil.copy(file, tmp_path / folder)
    environment = dict(os.environ, PYTHONPATH=str(tmp_path / "python"))

    def call(python, *flags, **more):
        return subprocess.run(
            [python, "-m", "assay", "doctor", *flags],
            env=environment | more, cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    return call


def test_lanes_run_in_the_python_that_assay_was_called_with(doctor, tmp_path):
    """A Python without frameworks is named, and not another one that has them."""
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    done = doctor(python)
    assert str(python) in done.stdout and done.returncode == 1


def test_doctor_does_not_ask_for_paddle_beside_pytorch(doctor):
    """It does if somebody names an interpreter for Paddle."""
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    alone = doctor(python)
    assert alone.returncode == 0, alone.stdout
    assert re.search(r"^note     paddle .* cannot be imported", alone.stdout, re.MULTILINE), alone.stdout
    named = doctor(python, f"--paddle_python={python}")
    assert named.returncode == 1 and "missing  paddle" in named.stdout, named.stdout


@pytest.mark.slow
def test_doctor_says_that_each_start_compiles_pytorch(doctor, tmp_path):
    """Where Python finds no bytecode and writes none."""
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    none = {"PYTHONPYCACHEPREFIX": str(tmp_path / "none"), "PYTHONDONTWRITEBYTECODE": "1"}
    slow = doctor(python, **none)
    said = rf"^note     torch has no bytecode.* `{python} -m compileall -q (\S+/torch)`$"
    found = re.search(said, slow.stdout, re.MULTILINE)
    assert found and slow.returncode == 0, slow.stdout
    assert pathlib.Path(found[1], "__init__.py").is_file()
    assert "bytecode" not in doctor(python).stdout


def shown_words():
    """Verbs with their options, as --help says: {"timeline merge": {"--out", …}}."""
    found = {}

    def look(words):
        text = output_of(ASSAY, *words, "--help")
        columns = re.findall(r"^ +(-\S+)", text, re.MULTILINE)
        found[" ".join(words)] = set(re.findall(r"--[\w-]+", " ".join(columns)))
        below = text.partition("\nSubcommands:\n")[2]
        for verb in re.findall(r"^  (\w+) ", below, re.MULTILINE):
            if words != ["help"]:  # below it stand the verbs again
                look([*words, verb])

    look([])
    return found


def test_manual_and_completion_have_what_help_shows():
    verbs = shown_words()
    assert "api" in verbs and "timeline merge" in verbs and "--api_config_file" in verbs["api"]
    page = output_of(ASSAY, "manual").replace("\\-", "-")
    sections = dict(re.findall(r"^\.SS assay ?(.*)\n((?:(?!\.SS).*\n)*)", page, re.MULTILINE))
    lines = dict(re.findall(r"'assay ?([^']*)'\) next='([^']*)'", output_of(ASSAY, "completion")))
    assert set(sections) == set(lines) == set(verbs)
    del verbs["help"]  # it shows the program's own help
    for verb, options in verbs.items():
        names = " ".join(re.findall(r"^\\fB(.*?)\\fR", sections[verb], re.MULTILINE))
        assert set(re.findall(r"--[\w-]+", names)) == options
        assert {word.rstrip("=") for word in lines[verb].split() if word.startswith("--")} == options


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["assay", "doc"], ["doctor"]),
        (["assay", "timeline", "mer"], ["merge"]),
        (["assay", "api", "--api_config_f"], ["--api_config_file=", "--api_config_file_pattern="]),
        (["assay", "api", "--log_dir", "=", "rep"], []),  # bash has files for this
        (["assay", "doc", ""], None),  # not a verb: those of assay again
    ],
)
def test_bash_offers(typed, offered):
    script = """source <("$1" completion); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _assay
    printf '%s\\n' "${COMPREPLY[@]}" """
    got = output_of("bash", "-c", script, "bash", ASSAY, *typed).split()
    if offered is None:
        assert {"api", "chain", "timeline"} <= set(got)
    else:
        assert got == offered


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_page_is_good_roff():
    done = subprocess.run(
        ["groff", "-Kutf8", "-man", "-ww", "-z"],
        input=output_of(ASSAY, "manual"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
