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


def many(api, count):
    return "".join(f'{api}(Tensor([{number}, 4], "float32"))\n' for number in range(2, count + 2))


def test_slim_keeps_each_api_with_a_case_of_medium_size_and_its_largest(corpus):
    text = many("paddle.abs", 30).replace("[20, 4]", "[250, 4]").replace("[31, 4]", "[9000, 4]")
    text += many("paddle.exp", 9) + 'paddle.sum(Tensor([9, 9], "float32"), axis=0)\n'
    out, said, code = corpus("slim", text, flags=["--share=0.2"])
    kept = out.splitlines()
    assert len(kept) == 8 and "8 of 40 cases kept" in said and code == 0
    assert 'paddle.abs(Tensor([250, 4], "float32"))' in kept
    assert 'paddle.exp(Tensor([10, 4], "float32"))' in kept
    assert 'paddle.sum(Tensor([9, 9], "float32"), axis=0)' in kept
    assert 'paddle.abs(Tensor([9000, 4], "float32"))' in kept
    assert corpus("slim", text, flags=["--share=1.5"])[2] == 2


def test_slim_keeps_the_cases_that_show_planted_faults(corpus, tmp_path):
    cases = many("paddle.abs", 20).splitlines()
    shown = {3: ["a", "b"], 4: ["b"], 11: ["c", "a"], 12: ["d"]}
    lines = [{"version": 1}]
    for number, faults in shown.items():
        lines += [{"case": cases[number], "fault": fault, "fate": "killed"} for fault in faults]
    lines.append({"case": cases[5], "fault": "e", "fate": "survived"})
    (tmp_path / "mutants.jsonl").write_text("\n".join(map(json.dumps, lines)))
    out, said, _ = corpus("slim", "\n".join(cases), flags=["--share=0.15", "--mutants=mutants.jsonl"])
    assert set(out.splitlines()) == {cases[3], cases[11], cases[12]}
    assert "they show 4 of 4 planted faults" in said
    assert corpus("slim", "\n".join(cases), flags=["--mutants=none.jsonl"])[2] == 2
