"""The page of `assay serve`, in a real Chromium. ASSAY_SCREENSHOT=FILE keeps a picture of it."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = ROOT / "build" / "release" / "bin" / "assay"
SETTINGS = """version = 1
[frameworks.paddle]
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={fake}"]
[frameworks.torch]
python = "{python}"
environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={fake}"]
"""


class Run:
    """A run of fake frameworks in a folder."""

    def __init__(self, folder):
        self.folder = folder
        fake = ROOT / "tests" / "engine" / "fake"
        (folder / "assay.toml").write_text(SETTINGS.format(python=sys.executable, fake=fake))

    def go(self, apis, size):
        cases = [f'paddle.fake.{api}(Tensor([{size + i}], "float32"))' for i, api in enumerate(apis)]
        (self.folder / "cases.txt").write_text("\n".join(cases) + "\n")
        words = ["--api_config_file=cases.txt", "--log_dir=run", "--num_gpus=0", "--num_workers_per_gpu=2"]
        done = subprocess.run(
            [ASSAY, "api", *words], cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr


@pytest.fixture
def run(tmp_path):
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    return Run(tmp_path)


@pytest.fixture
def serve(run):
    """Starts `assay serve` on the run; gives the address that it prints."""
    servers = []

    def start(*words, **environment):
        command = [ASSAY, "serve", run.folder / "run", *words]
        servers.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        )
        return servers[-1].stdout.readline().strip()

    yield start
    for server in servers:
        server.terminate()
        assert server.wait() == 0


@pytest.fixture
def page():
    """A page of Chromium, from which every request to another machine is an error."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1200, "height": 1600})
        opened.problems = []
        opened.on("console", lambda said: said.type == "error" and opened.problems.append(said.text))
        opened.on("pageerror", lambda error: opened.problems.append(str(error)))
        opened.on(
            "request",
            lambda asked: "//127.0.0.1:" in asked.url or opened.problems.append(asked.url),
        )
        yield opened
        browser.close()


def rows(page, table):
    """The cells of a table's rows, without its head."""
    script = "t => [...t.rows].slice(1).map(r => [...r.cells].map(c => c.textContent))"
    return page.eval_on_selector(table, script)


def wait_for(page, text):
    page.get_by_text(text).first.wait_for(timeout=60_000)


def test_a_run_is_shown_and_grows(run, serve, page):
    run.go(["echo", "echo", "wrong", "wrong", "crash"], size=3)
    page.goto(serve())
    wait_for(page, "5 of 5 cases (100.0%)")
    assert dict(rows(page, "#outcomes")) == {"pass": "2", "mismatch": "2", "crash": "1"}
    findings = rows(page, "#findings")
    assert [[f[0], f[1], f[2]] for f in findings] == [
        ["2", "mismatch", "paddle.fake.wrong"],
        ["1", "crash", "paddle.fake.crash"],
    ]
    rates = {name: (passed, cases) for name, passed, cases, _ in rows(page, "#apis")}
    assert rates["paddle.fake.echo"] == ("100.0%", "2")
    assert rates["paddle.fake.wrong"] == ("0.0%", "2")
    assert rows(page, "#dtypes")[0][:3] == ["float32", "40.0%", "5"]
    assert page.locator("#history path.all").count() == 1
    assert page.locator("#stages rect").count() >= 4

    # Without a reload.
    run.go(["echo", "raises"], size=50)
    wait_for(page, "7 of 7 cases (100.0%)")
    assert {f[2] for f in rows(page, "#findings")} == {
        "paddle.fake.wrong",
        "paddle.fake.crash",
        "paddle.fake.raises",
    }
    page.fill("#find", "raises")
    wait_for(page, "1 shown")
    assert len(rows(page, "#findings")) == 1
    if wanted := os.environ.get("ASSAY_SCREENSHOT"):
        page.fill("#find", "")
        page.screenshot(path=wanted, full_page=True)
    assert page.problems == []


def test_texts_are_texts(run, serve, page):
    run.go(["echo"], size=3)
    page.goto(serve())
    wait_for(page, "1 of 1 cases")
    evil = '<img src=x onerror="document.title=1">'
    page.evaluate(
        """evil => show({...last, findings: [{api: evil, outcome: evil, where: evil, how: evil, text: evil,
           message: evil, cases: 1, last_ms: 0}]})""",
        evil,
    )
    assert rows(page, "#findings")[0][2] == evil
    assert page.locator("img").count() == 0


def test_elsewhere_it_asks_for_a_token(run, serve, page):
    run.go(["echo"], size=3)
    address = serve("--host=0.0.0.0", ASSAY_SERVE_TOKEN="a-secret").replace("0.0.0.0", "127.0.0.1")
    assert address.endswith("/?token=a-secret")
    page.goto(address)
    wait_for(page, "1 of 1 cases")
    refused = page.goto(address.replace("a-secret", "a-guess"))
    assert refused.status == 403
