"""`assay corpus merge`, `diff`, `filter` and `stats`, through the program."""

import json
import pathlib
import subprocess

import pytest

ASSAY = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "assay"
OLD = """\
# a comment
paddle.abs(Tensor([2, 3], "float32"))
paddle.abs( Tensor([2,3],"float32"), )
paddle.add(Tensor([4], "float16"), Tensor([4], "float16"))
torch.nn.functional.softmax(Tensor([8, 16], "float32"), dim=-1)
"""
NEW = """\
torch.nn.functional.log_softmax(Tensor([80, 16], "bfloat16"), dim=-1)
paddle.abs(Tensor([2, 3], 'float32'))
"""


@pytest.fixture
def corpus(tmp_path):
    """Runs a tool on files of these texts, and returns its output, what it says, and its exit code."""
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")

    def run(tool, *texts, flags=()):
        files = []
        for number, text in enumerate(texts):
            files.append(tmp_path / f"{number}.txt")
            files[-1].write_text(text)
        done = subprocess.run(
            [ASSAY, "corpus", tool, *files, *flags], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        return done.stdout, done.stderr, done.returncode

    return run


def test_merge_keeps_each_case_once_where_it_first_occurs(corpus):
    out, said, code = corpus("merge", OLD, NEW)
    names = [line.split("(")[0] for line in out.splitlines()]
    log_softmax = "torch.nn.functional.log_softmax"
    assert names == ["paddle.abs", "paddle.add", "torch.nn.functional.softmax", log_softmax]
    assert (said, code) == ("", 0)


def test_merge_adds_up_the_calls_of_captures(corpus):
    head = '# assay capture 1 {"framework": "torch"}\n'
    case = 'torch.abs(Tensor([2], "float32"))\n'
    other = 'torch.neg(Tensor([2], "float32"))\n#: {"calls": 1}\n'
    out, _, code = corpus(
        "merge", head + case + '#: {"calls": 3, "at": []}\n', head + other + case + '#: {"calls": 4}'
    )
    lines = out.splitlines()
    assert code == 0 and lines[0] == head.strip() and lines[1] == case.strip()
    assert json.loads(lines[2].removeprefix("#: ")) == {"calls": 7, "at": []}
    assert lines[3:] == other.splitlines()


def test_diff_says_what_is_gone_and_what_is_new(corpus):
    out, said, code = corpus("diff", OLD, NEW)
    assert [line[:12] for line in out.splitlines()] == ["- paddle.add", "- torch.nn.f", "+ torch.nn.f"]
    assert said == "1 case in both, 2 removed, 1 added\n" and code == 1
    assert corpus("diff", OLD, OLD + "\n\n") == ("", "3 cases in both, 0 removed, 0 added\n", 0)
    assert corpus("diff", OLD)[2] == 2


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["-k", "softmax and not log"], ["softmax"]),
        (["--api", "paddle.*"], ["abs", "abs", "add", "abs"]),
        (["--api", "paddle.a?d", "--api", "*.softmax"], ["add", "softmax"]),
        (["--dtype=float16,bfloat16"], ["add", "log_softmax"]),
        (["--max-elements=8"], ["abs", "abs", "add", "abs"]),
        (["--min-elements=7", "--max-elements=128"], ["add", "softmax"]),
    ],
)
def test_filter(corpus, flags, kept):
    out, said, code = corpus("filter", OLD, NEW, flags=flags)
    assert [line.split("(")[0].split(".")[-1] for line in out.splitlines()] == kept
    assert (said, code) == ("", 0)


def test_filter_keeps_notes_and_the_head(corpus):
    head, note = '# assay capture 1 {"framework": "torch"}\n', '#: {"calls": 3}\n'
    cases = ['torch.abs(Tensor([2], "float32"))\n', 'torch.neg(Tensor([2], "float32"))\n']
    out, _, _ = corpus("filter", head + cases[0] + '#: {"calls": 5}\n' + cases[1] + note, flags=["-k", "neg"])
    assert out == head + cases[1] + note


def test_lines_that_do_not_parse_are_shown_and_left_out(corpus):
    out, said, code = corpus("filter", OLD + "paddle.abs(Tensor([2\n")
    assert len(out.splitlines()) == 4 and code == 1
    assert "0.txt:6" in said and "1 line left out: they do not parse" in said


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--dtype=float31"], "there is no dtype float31"),
        (["--outcome=pass"], "--outcome and --run go together"),
        (["--outcome=pass", "--run=nowhere"], "nowhere"),
        (["-k", "softmax and"], "-k, column 12"),
    ],
)
def test_wrong_filters_are_usage_errors(corpus, flags, problem):
    out, said, code = corpus("filter", OLD, flags=flags)
    assert out == "" and code == 2 and problem in said


def test_stats_is_a_page(corpus):
    page, _, code = corpus("stats", OLD, NEW)
    assert code == 0 and page.startswith("# 4 cases of 4 APIs\n")
    assert "| `paddle.add` | 1 | 8 | 8 |" in page
    assert "| `dim` | 2 |" in page and "| `float32` | 2 |" in page and "| 1e3 to 1e4 | 1 |" in page
