"""How sharp the judge is: faults planted in Paddle's lane, and how many of them are found."""

import json
import subprocess

import pytest

from engine import ASSAY, ROOT

CASES = """\
paddle.abs(Tensor([4, 6], "float32"))
paddle.multiply(Tensor([40], "float64"), Tensor([40], "float64"))
paddle.argmax(Tensor([10, 7], "float32"), 1)
paddle.Tensor.add_(Tensor([40], "float32"), Tensor([40], "float32"))
"""


def mutate(folder, corpus, *flags):
    """The run's folder, and every line of its mutants."""
    for needed in (ASSAY, ROOT / ".venv" / "paddle", ROOT / ".venv" / "torch"):
        if not needed.exists():
            pytest.skip(f"{needed.name} is not there: make build")
    logs = folder / "run"
    command = [ASSAY, "mutate", f"--api_config_file={corpus}", f"--log_dir={logs}", "--num_workers=2"]
    done = subprocess.run([*command, *flags], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *lines = (logs / "mutants.jsonl").read_text().splitlines()
    assert json.loads(head)["version"] == 1
    return logs, [json.loads(line) for line in lines]


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text(CASES)
    return file


def fates(lines, fault, values):
    """Of the fault under these values, by API."""
    found = [line for line in lines if (line["fault"], line["values"]) == (fault, values)]
    return {line["case"].split("(")[0]: line["fate"] for line in found}


def test_each_fault_has_its_fate(tmp_path, corpus):
    _, lines = mutate(tmp_path, corpus)
    everywhere = {"paddle.abs", "paddle.multiply", "paddle.argmax", "paddle.Tensor.add_"}
    floats = everywhere - {"paddle.argmax"}
    for fault in ("off_5_percent", "sign"):
        expected = dict.fromkeys(floats, "killed") | {"paddle.argmax": "inapplicable"}
        assert fates(lines, fault, "usual") == expected
    for fault in ("dtype", "shape", "no_kernel"):
        assert fates(lines, fault, "usual") == dict.fromkeys(everywhere, "killed")
    for fault in ("gradient_1.01", "gradient_lost"):
        expected = dict.fromkeys(floats, "killed") | {"paddle.argmax": "inapplicable"}
        assert fates(lines, fault, "usual") == expected
    assert fates(lines, "off_by_one", "usual")["paddle.argmax"] == "killed"
    # The first axis of two for the last one.
    assert fates(lines, "axis", "usual")["paddle.argmax"] == "killed"
    assert fates(lines, "stale_state", "usual")["paddle.Tensor.add_"] == "killed"
    assert fates(lines, "nan_swallowed", "usual")["paddle.abs"] == "inapplicable"
    assert fates(lines, "nan_swallowed", "nan")["paddle.abs"] == "killed"
    assert fates(lines, "ties", "exact")["paddle.abs"] == "equivalent"
    assert fates(lines, "input_overwritten", "usual")["paddle.abs"] == "killed"


def test_its_verdicts_are_those_without_faults(tmp_path, corpus):
    logs, _ = mutate(tmp_path, corpus, "--operators=sign", "--values=usual")
    listed = subprocess.check_output([ASSAY, "report", logs, "--list", "pass"], text=True)
    assert sorted(listed.splitlines()) == sorted(CASES.splitlines())
    report = json.loads(subprocess.check_output([ASSAY, "report", logs, "--json"], text=True))
    assert report["properties"]["mutants"] == "sign"


def test_a_real_run_cannot_go_on_in_its_folder(tmp_path, corpus):
    logs, _ = mutate(tmp_path, corpus, "--operators=sign", "--values=usual")
    command = [
        ASSAY,
        "api",
        f"--api_config_file={corpus}",
        f"--log_dir={logs}",
        "--values=usual",
        "--num_gpus=0",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "was begun with mutants = sign" in done.stderr


@pytest.mark.parametrize(
    ("flag", "words"),
    [("--operators=sing", "none is called sing"), ("--sample=0.1", "takes a share"), ("--sample=1/0", "1/1")],
)  # fmt: skip
def test_what_cannot_be_is_said_in_one_line(tmp_path, corpus, flag, words):
    if not ASSAY.exists():
        pytest.skip("assay is not there: make build")
    command = [ASSAY, "mutate", f"--api_config_file={corpus}", flag]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
