"""Every shell block of the READMEs, tutorials and how-tos runs as it is printed.

README's blocks run in a copy of the clone after the demo; those of docs/ in an empty folder, with `assay` on
the PATH and the clone in ASSAY_SOURCE. An assay command may end with 1 (some verdict failed); all others must
end with 0.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from blocks import Block, shell_blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
IN_THE_CLONE = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "examples/README.md")
IN_AN_EMPTY_FOLDER = ("docs/tutorials/**/*.md", "docs/how-to/**/*.md", "docs/zh-CN/**/*.md")
# Their commands take more than 10 s.
SLOW = {
    *("examples/README.md", "docs/tutorials/pytorch-a-against-b.md", "docs/how-to/report-a-bug-upstream.md"),
    *("docs/how-to/capture-a-program.md", "docs/how-to/judge-a-kernel.md", "docs/how-to/resume-and-rerun.md"),
    *("docs/how-to/pytorch-training-as-a-chain.md", "docs/how-to/two-nightly-wheels.md"),
    *("docs/how-to/work-with-corpora.md", "docs/how-to/test-many-models.md", "README.zh-CN.md"),
}
LIMIT_S = 120
# Restores the folder and the variables that the last block has left, and stops at the first failure.
BEFORE = """
set -Euo pipefail
[ ! -e "$DOCS_STATE" ] || source "$DOCS_STATE"
failure() {
  case "$2" in *assay*) [ "$1" -gt 1 ] || return 0 ;; esac
  failed=$1
  exit "$1"
}
ended() {
  { echo "cd $(printf %q "$PWD")"; export -p; } >"$DOCS_STATE"
  [ -z "${finished:-}" ] || exit 0
  exit "${failed:-$1}"
}
trap 'failure $? "$BASH_COMMAND"' ERR
trap 'ended $?' EXIT
"""
AFTER = "\nfinished=yes\n"


def pages():
    """Paths from the root."""
    found = [ROOT / name for name in IN_THE_CLONE]
    for pattern in IN_AN_EMPTY_FOLDER:
        found += sorted(ROOT.glob(pattern))
    return [str(page.relative_to(ROOT)) for page in found if page.exists()]


def copy_of_the_clone(folder: pathlib.Path) -> None:
    """The tracked files, with the build and the environments of this clone."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listing, cwd=ROOT, text=True).split("\0"):
        source = ROOT / name
        if not name or not source.is_file() or name.startswith(("bench/", "fuzz/")):
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, folder / name, follow_symlinks=False)
    for name in ("build", ".venv"):
        (folder / name).symlink_to(ROOT / name)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of the clone in which the demo has run."""
    folder = tmp_path_factory.mktemp("clone")
    copy_of_the_clone(folder)
    done = subprocess.run(["tools/demo"], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "demo.txt").write_text(done.stdout)
    return folder


def run_block(block: Block, folder: pathlib.Path, state: pathlib.Path):
    """Runs one block as bash does, where the one before has ended."""
    variables = {
        **os.environ,
        "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}",
        "ASSAY_SOURCE": str(ROOT),
        "DOCS_STATE": str(state),
    }
    return subprocess.run(
        ["bash", "-c", BEFORE + block.text + AFTER],
        cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=LIMIT_S,
    )  # fmt: skip


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page in SLOW)) for page in pages()]
)
def test_the_commands_of(page, request, tmp_path):
    for needed in (BUILD / "bin" / "assay", ROOT / ".venv" / "paddle", ROOT / ".venv" / "torch"):
        if not needed.exists():
            pytest.skip(f"{needed.name} is not there: make build")
    blocks = [block for block in shell_blocks((ROOT / page).read_text()) if not block.why_not]
    if not blocks:
        return
    if page in IN_THE_CLONE:
        folder = request.getfixturevalue("clone")
    else:
        folder = tmp_path / "work"
        folder.mkdir()
    for block in blocks:
        done = run_block(block, folder, tmp_path / "state")
        assert done.returncode == 0, f"{page}:{block.line}\n{done.stdout[-3000:]}"
        missing = block.missing_in(done.stdout)
        assert not missing, f"{page}:{block.line} does not print {missing!r}, but\n{done.stdout[-3000:]}"


@pytest.mark.parametrize(
    ("readme", "pattern"),
    [
        ("README.md", r"passes (\d+) cases and fails (\d+)\. In (\d+) of these"),
        ("README.zh-CN.md", r"(\d+) 个用例通过，(\d+) 个失败：其中 (\d+) 个"),
    ],
)
def test_the_readme_says_what_the_demo_shows(readme, pattern, clone):
    shown = (clone / "demo.txt").read_text()
    counts = {outcome: int(count) for count, outcome in re.findall(r"^ +(\d+)  (\w+)", shown, re.MULTILINE)}
    passed, failed, mismatches = map(int, re.search(pattern, (ROOT / readme).read_text()).groups())
    others = counts["crash"] + counts["invalid"]
    assert (passed, mismatches, failed - mismatches) == (counts["pass"], counts["mismatch"], others)


def test_what_a_block_prints_is_compared():
    [block] = shell_blocks("```sh\none\n```\n\n```text\n 1 of … cases\n…\nlast\n```\n")
    assert block.prints == " 1 of … cases\n…\nlast"
    assert block.missing_in("first\n1 of 5 cases\nmore\n   last\n") == ""
    assert block.missing_in("last\n1 of 5 cases\n") == "last"
    assert block.missing_in("1 of 5 case\nlast\n") == "1 of … cases"


def test_blocks_markers_and_fences():
    page = """\
```sh
one
```
<!-- not run: it takes a GPU -->

```sh
two
```
<!-- run first:
three
-->
- in a list:
  ```bash
  four
    five
  ```
  and so on
```text
not directly below
```
```toml
six = 6
```
"""
    assert shell_blocks(page) == [
        Block(2, "one"),
        Block(7, "two", "it takes a GPU"),
        Block(10, "three", hidden=True),
        Block(14, "four\n  five"),
    ]
    with pytest.raises(ValueError, match="line 1: this block holds commands"):
        shell_blocks("```\nassay api\n```\n")
    with pytest.raises(ValueError, match="no ```"):
        shell_blocks("```sh\nassay api\n")


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        ("true", 0),
        ("false\ntrue", 1),
        ("false", 1),
        ("assay api --no-such-flag\ntrue", 2),
        ("assay corpus check bad.txt", 0),  # exit code 1
        ("false || true", 0),
        ("x=$(false)\ntrue", 1),
        ("echo $x\ntrue", 127),
        ("cd /nowhere\ntrue", 1),
    ],
)
def test_a_block_stops_at_the_first_failure(commands, code, tmp_path):
    if not (BUILD / "bin" / "assay").exists():
        pytest.skip("assay is not built: make build")
    (tmp_path / "bad.txt").write_text("no case\n")
    done = run_block(Block(1, commands), tmp_path, tmp_path / "state")
    assert done.returncode == code, done.stdout


def test_a_block_starts_where_the_last_one_ended(tmp_path):
    first = Block(1, "mkdir a && cd a && export B='c d'")
    assert run_block(first, tmp_path, tmp_path / "state").returncode == 0
    done = run_block(Block(1, 'pwd; echo "$B"'), tmp_path, tmp_path / "state")
    assert done.stdout.split("\n")[:2] == [str(tmp_path / "a"), "c d"]
