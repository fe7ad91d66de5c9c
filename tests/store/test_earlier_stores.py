"""Runs that earlier versions have stored open in this one, or one line says how to convert them.

tests/store/earlier has one small store for each version: docs/how-to/release.md adds it.
"""

import gzip
import json
import re
import subprocess

import pytest
from tree import ASSAY, ROOT

STORES = sorted((ROOT / "tests/store/earlier").glob("*.db.gz"))

pytestmark = pytest.mark.skipif(not ASSAY.exists(), reason="build the target assay")


@pytest.mark.parametrize("store", STORES, ids=[store.name for store in STORES])
def test_an_earlier_store_opens_or_says_how_to_convert_it(store, tmp_path):
    (tmp_path / "run.db").write_bytes(gzip.decompress(store.read_bytes()))
    command = [ASSAY, "report", tmp_path, "--json", "--against", "baseline.toml"]
    (tmp_path / "baseline.toml").write_text("version = 2\n")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    if done.returncode == 2:
        [line] = done.stderr.splitlines()
        assert re.search(r"convert|upgrade|older assay", line)
        return
    assert done.returncode == 1, done.stderr  # its mismatch is new
    report = json.loads(done.stdout)
    assert report["outcomes"]["pass"] >= 1 and report["outcomes"]["mismatch"] >= 1
    [finding] = report["findings"]
    shown = subprocess.run(
        [ASSAY, "show", tmp_path, finding["id"]], capture_output=True, text=True, check=True
    )
    assert finding["api"] in shown.stdout


def test_there_is_one():
    assert STORES
