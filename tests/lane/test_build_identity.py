"""The identity of a build: equal for the same files, another one when a part of the build changes."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A framework of two files, a library and a commit, as its wrapper sees it.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import tiny
from assay import build_identity

class Wrapper:
    name, version = "tiny", "1.0"

print(build_identity.build(Wrapper()))
"""


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "site" / "tiny"
    (folder / "libs").mkdir(parents=True)
    (folder / "__init__.py").write_text("from tiny import version\n")
    (folder / "version.py").write_text("commit = '0123456789abcdef'\ncuda = None\n")
    (folder / "ops.py").write_text("def relu(x): return max(x, 0)\n")
    (folder / "libs" / "libtiny.so.1").write_bytes(bytes(100))
    (folder / "notes.txt").write_text("what changes here is not part of a build\n")
    return folder


def build_of(package, tmp_path, **environment):
    """The identity that a new interpreter finds."""
    own = {"PYTHONPATH": str(ROOT / "python"), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.defpath}
    command = [sys.executable, "-B", "-c", PROGRAM, package.parent]
    return subprocess.check_output(command, env=own | environment, text=True).strip()


def test_the_same_files_are_the_same_build(package, tmp_path):
    first = build_of(package, tmp_path)
    assert first.startswith("1.0, commit 0123456789ab, files ")
    (package / "notes.txt").write_text("changed")
    os.utime(package / "ops.py")
    assert build_of(package, tmp_path) == first
    moved = package.parent.with_name("elsewhere")
    package.parent.rename(moved)
    assert build_of(moved / "tiny", tmp_path) == first


def change_python(package):
    (package / "ops.py").write_text("def relu(x): return max(x, 1)\n")


def change_library(package):
    (package / "libs" / "libtiny.so.1").write_bytes(bytes(99) + b"x")


def change_commit(package):
    (package / "version.py").write_text("commit = 'fedcba9876543210'\ncuda = None\n")


def add_a_file(package):
    (package / "more.py").write_text("")


@pytest.mark.parametrize("change", [change_python, change_library, change_commit, add_a_file])
def test_a_changed_part_is_another_build(package, tmp_path, change):
    before = {file: file.stat() for file in package.rglob("*") if file.is_file()}
    first = build_of(package, tmp_path)
    change(package)
    for file, stat in before.items():  # as an archive that restores times would leave them
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert build_of(package, tmp_path) != first


def test_folders_behind_links_are_read(package, tmp_path):
    real = package.parent.with_name("real")
    (package / "libs").rename(real)
    (package / "libs").symlink_to(real)
    (real / "back").symlink_to(real)
    first = build_of(package, tmp_path)
    (real / "libtiny.so.1").write_bytes(b"other")
    assert build_of(package, tmp_path) != first


def test_what_pythonpath_puts_over_the_framework_counts(package, tmp_path):
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    first = build_of(package, tmp_path)
    path = f"{ROOT / 'python'}:{overlay}"
    (overlay / "sitecustomize.py").write_text("")
    with_overlay = build_of(package, tmp_path, PYTHONPATH=path)
    assert with_overlay != first
    (overlay / "sitecustomize.py").write_text("replaced = 1")
    assert build_of(package, tmp_path, PYTHONPATH=path) not in (first, with_overlay)


def test_variables_that_change_results_count(package, tmp_path):
    first = build_of(package, tmp_path)
    assert build_of(package, tmp_path, HOME="/", LANG="C") == first
    assert build_of(package, tmp_path, NVIDIA_TF32_OVERRIDE="0") == f"{first}, NVIDIA_TF32_OVERRIDE=0"


BROKEN = {
    "empty": "",
    "without a version": "{}",
    "of another version": '{"v": 0, "files": {}}',
    "a list": '{"v": 1, "files": [1]}',
    "of numbers": '{"v": 1, "files": {"a": 1}}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_cache_is_written_anew(package, tmp_path, text):
    first = build_of(package, tmp_path)
    (cache,) = (tmp_path / "cache").rglob("*.json")
    cache.write_text(text)
    assert build_of(package, tmp_path) == first


def test_a_cache_that_cannot_be_written_is_done_without(package, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    assert build_of(package, tmp_path).startswith("1.0, commit 0123456789ab, files ")
