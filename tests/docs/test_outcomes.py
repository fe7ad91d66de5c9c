"""Each outcome has a paragraph in the reference and a line in the triage of a night."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = (ROOT / "src/verdict/outcome.h").read_text()
PAGE = (ROOT / "docs/reference/outcomes.md").read_text()
TRIAGE = (ROOT / "docs/how-to/triage-a-failed-night.md").read_text()
OUTCOMES = re.findall(r'\{Outcome::\w+, "(\w+)"', SOURCE)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_each_outcome_says_whose_fault_it_is_and_what_to_do(outcome):
    [text] = re.findall(rf"(?ms)^### [^\n]*`{outcome}`[^\n]*\n(.*?)(?=^##)", PAGE)
    for part in ("*Fault*:", "*Do*:", "*Example*:"):
        assert part in re.sub(r"\s+", " ", text), f"{outcome}: no {part}"
    assert re.search(rf"(?m)^\| [^|]*`{outcome}`", TRIAGE), f"{outcome} is not in the triage"


def test_the_outcomes_were_found():
    assert len(OUTCOMES) >= 20
