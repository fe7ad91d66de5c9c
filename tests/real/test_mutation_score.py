"""How sharp the judge is: faults planted in Paddle's lane, and how many of them are found."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from tree import ASSAY, ROOT

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
os.environ.pop("ASSAY_FRAMEWORK", None)

from assay.mutation.faults import FAULTS  # noqa: E402
from assay.mutation.score import read, rows  # noqa: E402

pytestmark = pytest.mark.slow

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
    [
        ("--operators=sing", "no fault is called sing"),
        ("--sample=0.1", "takes a share"),
        ("--sample=1/0", "1/1"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path, corpus, flag, words):
    if not ASSAY.exists():
        pytest.skip("assay is not there: make build")
    command = [ASSAY, "mutate", f"--api_config_file={corpus}", flag]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.splitlines()) == 1


# The share that has to be found of each fault that changes a value, in a tenth of the mutants of our own
# corpus with seed 1 (see lab/mutation.md). Aims are 99%, 95% and 90%; a tenth has some
# twenty of each, so that one survivor more is 5%.
LEAST = {
    "off_5_percent": 0.95,
    "off_0.1_percent": 0.9,  # where places are computed the bar is wide
    # Of sums and of what lies below the scale of a result eight ulps are within what rounding may do, and of
    # float64 nothing is known better.
    "off_8_ulp": 0.65,
    "off_by_one": 0.95,
    "sign": 0.95,
    "nan_swallowed": 1.0,
    "last_row": 0.95,
    "gradient_1.01": 0.95,
    "gradient_of_neighbour": 0.95,
    "lower_precision": 0.95,
}
HALVES = ("float16", "bfloat16")  # 0.1% is one or two of their last places


def test_a_tenth_of_all_mutants(tmp_path):
    flags = ["--cases=1", "--sample=1/10", "--seed=1"]
    logs, _ = mutate(tmp_path, ROOT / "examples" / "api_configs.txt", *flags)
    _, mutants = read(logs / "mutants.jsonl")
    judged = [mutant for mutant in mutants if not mutant.weak and mutant.dtype not in HALVES]
    assert sum(mutant.fate in ("killed", "survived") for mutant in judged) > 150
    missed = [m for m in judged if m.fate == "survived" and FAULTS[m.fault].kind == "structure"]
    assert missed == []
    found = rows(judged, lambda mutant: mutant.fault)
    shares = {fault: found[fault].share for fault in LEAST if fault in found and found[fault].made}
    assert {fault: share for fault, share in shares.items() if share < LEAST[fault]} == {}
