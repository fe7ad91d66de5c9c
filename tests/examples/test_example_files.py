"""Runs the files of examples/. (examples/README.md's commands: tests/docs.)"""

import json
import os
import shutil
import subprocess

import pytest
import tomllib
import yaml
from tree import ASSAY, ROOT

EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.skipif(
    not (ASSAY.exists() and (ROOT / ".venv" / "paddle").exists()), reason="assay is not built: make build"
)


def run(*words, folder, code=0, **variables):
    """What a command prints; it must end with this exit code."""
    variables["PATH"] = f"{ASSAY.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("lane", ["static", "no-onednn"])
def test_each_lane_of_the_settings_runs(lane, tmp_path):
    case = 'paddle.nn.functional.gelu(Tensor([4, 5], "float32"))'
    settings = [f"--settings={EXAMPLES / 'assay.toml'}", f"--test-lane={lane}", "--reference-lane=paddle"]
    shown = run("assay", "api", f"--api_config={case}", *settings, folder=tmp_path)
    assert "1  pass" in shown


def test_the_campaign_runs_and_retests_what_failed(tmp_path):
    (tmp_path / "examples").symlink_to(EXAMPLES)
    command = ["assay", "run", "examples/campaign.toml", "--foreground", "--", "-k", "softmax and not log"]
    shown = run(*command, folder=tmp_path, code=1, NIGHT="first")
    assert "mismatch" in shown
    rounds = [folder.name for folder in (tmp_path / "assay-runs").iterdir()]
    assert "first" in rounds and len(rounds) == 2, rounds


def repository(tmp_path):
    """A framework's repository whose main branch knows one fault; the pull request changes two APIs."""
    source = tmp_path / "relu_kernel.cc"
    source.write_text("void ReluKernel() {}\nvoid AbsKernel() {}\n")
    cases = tmp_path / "cases.txt"
    cases.write_text(
        'paddle.abs(Tensor([2, 3], "float32"))\n'
        'paddle.nn.functional.relu(Tensor([8, 16], "float32"))\n'
        'paddle.exp(Tensor([2, 3], "float32"))\n'
    )
    run("assay", "api", "--api_config_file=cases.txt", "--log_dir=known", "--fail-on=none", folder=tmp_path)
    run("assay", "report", "known", "--write-baseline", "baseline.toml", folder=tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "relu_kernel.cc"], ["commit", "-qm", "main"]):
        run(*git, *words, folder=tmp_path)
    run("git", "update-ref", "refs/remotes/origin/main", "HEAD", folder=tmp_path)
    source.write_text("void ReluKernel() { return; }\nvoid AbsKernel() { return; }\n")
    run(*git, "commit", "-qam", "change", folder=tmp_path)


def test_the_workflow_gates_a_pull_request(tmp_path):
    steps = yaml.safe_load((EXAMPLES / "ci" / "gate.yml").read_text())["jobs"]["gate"]["steps"]
    commands = [
        step["run"] for step in steps if "assay" in step.get("run", "") and "pip install" not in step["run"]
    ]
    assert len(commands) == 2
    repository(tmp_path)
    api, report = (["bash", "-euo", "pipefail", "-c", command] for command in commands)
    summary = tmp_path / "summary.md"
    shown = run(*api, folder=tmp_path, GITHUB_BASE_REF="main")
    assert "1 of other APIs" in shown and "1  pass" in shown
    shown = run(*report, folder=tmp_path, GITHUB_STEP_SUMMARY=str(summary))
    assert shown.startswith("::notice title=assay::passes") and "::error" not in shown
    assert summary.read_text().startswith("### :white_check_mark: assay passes")
    assert "<testsuite" in (tmp_path / "junit.xml").read_text()
    # The same gate when the fault is not known (writing again would keep a fault that was not judged).
    (tmp_path / "baseline.toml").unlink()
    run("assay", "api", "--api_config_file=cases.txt", "-k", "abs", "--log_dir=healthy", folder=tmp_path)
    run("assay", "report", "healthy", "--write-baseline", "baseline.toml", folder=tmp_path)
    shown = run(*report, folder=tmp_path, code=1, GITHUB_STEP_SUMMARY=str(summary))
    assert "::error file=cases.txt,line=2," in shown
    assert "### :x: assay fails" in summary.read_text()
    assert "| new | `paddle.nn.functional.relu` |" in summary.read_text()
    results = json.loads((tmp_path / "assay.sarif").read_text())["runs"][0]["results"]
    assert all(result["partialFingerprints"]["primaryLocationLineHash"] for result in results)
    assert "new" in {result["baselineState"] for result in results}


def script_of(job):
    """The lines of a GitLab job, as its runner joins them."""
    return ["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])]


@pytest.mark.slow
def test_the_jobs_of_gitlab_gate_and_run_a_night(tmp_path):
    jobs = yaml.safe_load((EXAMPLES / "ci" / "gitlab-ci.yml").read_text())
    repository(tmp_path)
    shown = run(*script_of(jobs["api-gate"]), folder=tmp_path, CI_MERGE_REQUEST_DIFF_BASE_SHA="origin/main")
    assert "1 of other APIs" in shown and "passes" in shown
    artifacts = jobs[".assay"]["artifacts"]
    for file in (*artifacts["paths"], artifacts["reports"]["junit"]):
        assert (tmp_path / file).stat().st_size > 0
    shutil.rmtree(tmp_path / "out")
    assert "3 cases" in run(*script_of(jobs["api-night"]), folder=tmp_path)
    assert all(job["extends"] == ".assay" and job["rules"] for name, job in jobs.items() if name[0] != ".")


@pytest.mark.slow
def test_the_night_of_github_fails_when_something_is_worse(tmp_path):
    steps = yaml.safe_load((EXAMPLES / "ci" / "night.yml").read_text())["jobs"]["night"]["steps"]
    night, summary, chat = (["bash", "-eo", "pipefail", "-c", step["run"]] for step in steps[3:6])
    repository(tmp_path)
    assert "passes" in run(*night, folder=tmp_path)
    with (tmp_path / "cases.txt").open("a") as corpus:
        corpus.write('paddle.nn.functional.relu(Tensor([3, 5], "float64"))\n')
    assert "1 fault that grew" in run(*night, folder=tmp_path, code=1)
    run(*summary, folder=tmp_path, GITHUB_STEP_SUMMARY="page.md")
    assert "assay fails" in (tmp_path / "page.md").read_text()
    (tmp_path / "curl").write_text('#!/bin/sh\necho "$@" > asked\n')  # instead of the network
    (tmp_path / "curl").chmod(0o755)
    chat[-1] = f"PATH={tmp_path}:$PATH\n{chat[-1]}"
    run(*chat, folder=tmp_path, CHAT_WEBHOOK="https://chat")
    assert "-d @message.json https://chat" in (tmp_path / "asked").read_text()
    assert "assay fails" in json.loads((tmp_path / "message.json").read_text())["text"]


def test_the_chain_trains_exports_and_infers(tmp_path):
    model = tmp_path / "chain"
    shutil.copytree(EXAMPLES / "chain", model)
    run("assay", "chain", "check", "train_infer_python.txt", folder=model)
    run("assay", "chain", "run", "train_infer_python.txt", "lite_train_lite_infer", folder=model)
    store = model / "test_tipc/assay/line/train_infer_python/lite_train_lite_infer/chain.db"
    run("assay", "chain", "report", store, "--out", "page.html", folder=model)
    assert "loss" in (model / "page.html").read_text()


def test_the_timeline_finds_the_schedule(tmp_path):
    run("python3", EXAMPLES / "timeline" / "pipeline_logs.py", "logs", folder=tmp_path)
    shown = run("assay", "timeline", "analyze", "--log_dir", "logs", folder=tmp_path)
    assert "1F1B" in shown


def test_the_back_end_in_triton_has_cases_and_lanes():
    """Its kernels need a GPU (bench/gpu/own_kernels.py)."""
    folder = EXAMPLES / "triton_backend"
    run("assay", "corpus", "check", "cases.txt", folder=folder)
    assert len((folder / "cases.txt").read_text().splitlines()) >= 45
    compile((folder / "backend.py").read_text(), "backend.py", "exec")
    lanes = tomllib.loads((folder / "assay.toml").read_text())["lanes"]
    assert {tuple(lane["modules_in_lane"]) for lane in lanes.values()} == {("backend",)}
