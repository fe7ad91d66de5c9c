"""Goldens of the installed frameworks: the verdicts of a direct comparison."""

import sqlite3
import subprocess

from engine import ASSAY, ROOT, run

STEP = 4  # every fourth line of the examples


def verdicts(folder):
    """Outcome and kinds of mismatch of each case of the run in folder/run."""
    with sqlite3.connect(folder / "run" / "run.db") as store:
        return {case: rest for case, *rest in store.execute("SELECT id, outcome, mismatch FROM finished")}


def test_verdicts_are_those_of_a_direct_comparison(tmp_path):
    lines = (ROOT / "examples" / "api_configs.txt").read_text().splitlines()
    corpus = tmp_path / "cases.txt"
    corpus.write_text("\n".join(lines[::STEP]) + "\n")
    for name in ("direct", "compared"):
        (tmp_path / name).mkdir()
    run(tmp_path / "direct", corpus)
    gold = tmp_path / "gold"
    record = [ASSAY, "record", f"--api_config_file={corpus}", f"--log_dir={gold}", "--quiet"]
    subprocess.run(record, cwd=tmp_path, check=True)
    run(tmp_path / "compared", corpus, f"--reference-lane=gold:{gold}")
    direct = verdicts(tmp_path / "direct")
    assert len(direct) > 60
    assert verdicts(tmp_path / "compared") == direct
