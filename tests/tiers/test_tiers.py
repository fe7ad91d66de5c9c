"""`make check` runs the tests without the mark `slow`, `make check-all` runs all: no test is in neither."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = (ROOT / "tools/check").read_text()
BUILD = ROOT / "build/release"


def tier(runner: str) -> tuple[list[str], list[str]]:
    """What tools/check gives to ctest or pytest in the quick tier, and for all tests."""
    quick, all_tests = (words.split() for words in re.findall(rf"{runner}_tier=\((.*)\)", CHECK))
    return [word.strip("'") for word in quick if word], all_tests


def python_tests(*selection: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *selection]
    # The plug-in of a run that this test may be a part of.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "tests"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_python_tests_are_in_one_of_two_tiers():
    everything = python_tests()
    quick = python_tests("-m", "not slow")
    slow = python_tests("-m", "slow")
    assert quick and slow and not quick & slow
    assert quick | slow == everything
    files = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py")}
    assert {test.split("::")[0] for test in everything} == files


def test_each_c_test_source_is_in_a_program():
    for source in ROOT.glob("tests/**/*_test.c[cu]"):
        lists = [folder / "CMakeLists.txt" for folder in source.parents if ROOT / "tests" in folder.parents]
        named = source.name.removesuffix("_test.cc")
        texts = [each.read_text() for each in lists if each.exists()]
        assert any(re.search(rf"\b{named}(_test\.cc)?\b|\b{source.name}\b", text) for text in texts), source


@pytest.mark.skipif(not (BUILD / "CTestTestfile.cmake").exists(), reason="nothing is built: make build")
def test_c_tests_have_known_labels():
    shown = subprocess.check_output(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], text=True)
    labels = {
        test["name"]: {
            label for each in test["properties"] if each["name"] == "LABELS" for label in each["value"]
        }
        for test in json.loads(shown)["tests"]
    }
    assert labels
    for name, of_test in labels.items():
        # One of them says what runs under sanitizers.
        assert len(of_test & {"unit", "system"}) == 1 and of_test <= {"unit", "system", "slow"}, name


def test_check_selects_by_the_mark_and_check_all_leaves_nothing_out():
    quick, all_tests = tier("ctest")
    assert (quick, all_tests) == (["--label-exclude", "^slow$"], [])
    quick, all_tests = tier("pytest")
    assert quick == ["-m", "not", "slow"]
    assert "-m" not in all_tests and "-k" not in all_tests
