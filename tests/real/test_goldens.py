"""Goldens of the installed frameworks: the verdicts of a direct comparison."""

import sqlite3
import subprocess

import pytest
from engine import run
from tree import ASSAY, ROOT

STEP = 4  # every fourth line of the examples


def verdicts(folder):
    """Outcome and kinds of mismatch of each case of the run in folder/run."""
    with sqlite3.connect(folder / "run" / "run.db") as store:
        return {case: rest for case, *rest in store.execute("SELECT id, outcome, mismatch FROM finished")}


def record(corpus, gold, *flags):
    command = [ASSAY, "record", f"--api_config_file={corpus}", f"--log_dir={gold}", "--quiet", *flags]
    subprocess.run(command, cwd=corpus.parent, check=True)


@pytest.mark.slow
def test_verdicts_are_those_of_a_direct_comparison(tmp_path):
    lines = (ROOT / "examples" / "api_configs.txt").read_text().splitlines()
    corpus = tmp_path / "cases.txt"
    corpus.write_text("\n".join(lines[::STEP]) + "\n")
    for name in ("direct", "compared"):
        (tmp_path / name).mkdir()
    run(tmp_path / "direct", corpus)
    gold = tmp_path / "gold"
    record(corpus, gold)
    run(tmp_path / "compared", corpus, f"--reference-lane=gold:{gold}")
    direct = verdicts(tmp_path / "direct")
    assert len(direct) > 60
    assert verdicts(tmp_path / "compared") == direct


@pytest.mark.slow
def test_a_digest_keeps_what_the_error_bar_depends_on(tmp_path):
    """Of these results most elements are exact, and one is 32 ulps off after cancellation: right, since
    others show that the reference rounds as well."""
    corpus = tmp_path / "cases.txt"
    corpus.write_text(
        'paddle.nn.functional.interpolate(Tensor([2, 2, 10, 10], "float32"), size=list[24, 2], '
        'scale_factor=None, mode="bilinear", align_corners=False, align_mode=0, data_format="NCHW", '
        "name=None)\n"
    )
    gold = tmp_path / "gold"
    record(corpus, gold, "--digest")
    run(tmp_path, corpus, f"--reference-lane=gold:{gold}")
    assert [outcome for outcome, _ in verdicts(tmp_path).values()] == ["pass"]
