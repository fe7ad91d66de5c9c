"""The page of `assay serve` and of report.html, in a real Chromium. ASSAY_SCREENSHOT=FILE keeps a picture."""

import itertools
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

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

    def words(self, cases, run):
        (self.folder / "cases.txt").write_text("\n".join(cases) + "\n")
        words = ["--api_config_file=cases.txt", f"--log_dir={run}", "--num_gpus=0", "--num_workers_per_gpu=2"]
        return [ASSAY, "api", *words]

    def go(self, apis, size, run="run"):
        cases = [f'paddle.fake.{api}(Tensor([{size + i}], "float32"))' for i, api in enumerate(apis)]
        done = subprocess.run(
            self.words(cases, run), cwd=self.folder, capture_output=True, text=True, timeout=120
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
            lambda asked: (
                asked.url.startswith(("http://127.0.0.1:", "file:///")) or opened.problems.append(asked.url)
            ),
        )
        yield opened
        browser.close()


def rows(page, table):
    """The cells of a table's rows, without its head."""
    script = "t => [...t.rows].slice(1).map(r => [...r.cells].map(c => c.textContent))"
    return page.eval_on_selector(table, script)


def counts(page):
    return {outcome: count for outcome, count, _ in rows(page, "#outcomes")}


def wait_for(page, text):
    page.get_by_text(text).first.wait_for(timeout=60_000)


def wait_until(look):
    """What `look` gives, once that is something."""
    deadline = time.monotonic() + 60
    while not (seen := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert seen
    return seen


def test_what_takes_long_is_shown_with_its_sums(run, page):
    long = "fused_rotary_position_embedding.of_a_family_with_a_name_without_end.echo"
    run.go([long, long, "echo"], size=3)
    page.goto((run.folder / "run" / "report.html").as_uri())
    wait_for(page, "3 of 3 cases (100.0%)")
    script = """all => all.map(t => {
        const { x, y, width } = t.getBBox();
        return [t.firstChild.data, t.textContent, { x, y, width }];
    })"""
    texts = page.eval_on_selector_all("#stages text", script)
    head = [text for text in texts if text[2]["y"] < 10]
    assert [shown for shown, _, _ in head[:5]] == ["API", "cases", "seconds", "fill", "test forward"]
    [(shown, both, box)] = [
        text for text in texts if text[1].endswith(f"paddle.fake.{long}") and text[0][0] == "…"
    ]
    assert both == shown + f"paddle.fake.{long}"  # the title has all of it
    assert shown.endswith("_without_end.echo") and box["width"] <= 310
    row = sorted((t for t in texts if abs(t[2]["y"] - box["y"]) < 2), key=lambda t: t[2]["x"])
    assert row[1][0] == "2" and float(row[2][0]) >= 0
    for line in (head, row):
        for (_, _, left), (_, _, right) in itertools.pairwise(line):
            assert left["x"] + left["width"] <= right["x"]


@pytest.mark.parametrize(
    ("mode", "lanes"), [("paddle_gpu_performance", 1), ("paddle_torch_gpu_performance", 2)]
)
def test_times_of_one_lane_are_compared_with_nothing(run, page, mode, lanes):
    words = run.words(['paddle.fake.echo(Tensor([2000], "float32"))'], "run")
    timed = [*words, f"--{mode}=True", "--timing_seconds=0.5"]
    subprocess.run(timed, cwd=run.folder, capture_output=True, timeout=120, check=False)
    page.goto((run.folder / "run" / "report.html").as_uri())
    assert rows(page, "#times")
    heads = page.eval_on_selector("#times", "t => [...t.rows[0].cells].map(c => c.textContent)")
    beside = ["test lane", "reference lane", "test to reference", ""] if lanes == 2 else ["time"]
    assert heads == ["case", "what", *beside]
    assert page.locator("#ratios").is_visible() == (lanes == 2)
    assert not page.problems


def test_a_run_is_shown_beside_a_past_one(run, page):
    case = 'paddle.fake.takes(Tensor([3], "float32"), 1000, 0)'
    timed = ["--paddle_gpu_performance=True", "--timing_seconds=5"]
    settings = run.folder / "assay.toml"
    usual = settings.read_text()
    for name, pace, against in (("old", "1", []), ("new", "1.3", ["--against=old"])):
        settings.write_text(usual.replace('fake"]', f'fake", "ASSAY_FAKE_PACE={pace}"]'))
        words = [*run.words([case], name), *timed, *against]
        subprocess.run(words, cwd=run.folder, capture_output=True, timeout=120, check=False)
    page.goto((run.folder / "old" / "report.html").as_uri())
    assert page.locator("#times-part").is_visible() and not page.locator("#against-part").is_visible()
    page.goto((run.folder / "new" / "report.html").as_uri())
    assert "1  slow" in page.locator("#against").text_content()
    assert rows(page, "#changed") == [
        [case, "forward host warm", "1.3 ms", "1 ms", "1.300 times as long (1.300 to 1.300)", "slow"]
    ]
    assert page.locator("#changes .slow line").count() == 1
    assert not page.problems


def test_a_run_is_shown_and_grows(run, serve, page):
    run.go(["echo", "echo", "wrong", "wrong", "crash"], size=3)
    page.goto(serve())
    wait_for(page, "5 of 5 cases (100.0%)")
    assert counts(page) == {"pass": "2", "mismatch": "2", "crash": "1"}
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
    wait_for(page, "1 of 1 case")
    evil = '<img src=x onerror="document.title=1">'
    page.evaluate(
        """evil => {
           const place = {api: evil, outcome: evil, where: evil, how: evil};
           const run = {name: evil, build: evil, outcomes: {pass: 1}};
           const finding = {...place, text: evil, message: evil, cases: 1, last_ms: 0};
           show({...last, findings: [finding], runs: [run, run]});
           const columns = ['id', 'outcome', 'kinds', 'lane', 'flags', 'text', 'message'];
           parts = [Object.fromEntries(columns.map(c => [c, [evil]]))];
           showCases();
        }""",
        evil,
    )
    assert rows(page, "#findings")[0][2] == evil
    assert evil in rows(page, "#cases")[0][1]
    assert rows(page, "#runs")[0][0] == evil
    assert page.locator("img").count() == 0


def test_the_printed_address_gives_a_cookie(run, serve, page):
    run.go(["echo"], size=3)
    address = serve("--host=0.0.0.0", ASSAY_SERVE_TOKEN="a-secret").replace("0.0.0.0", "127.0.0.1")
    assert address.endswith("/a-secret/")
    page.goto(address)
    wait_for(page, "1 of 1 case")
    assert "a-secret" not in page.url
    [cookie] = page.context.cookies()
    assert cookie["value"] == "a-secret" and cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    page.reload()
    wait_for(page, "1 of 1 case")
    # Without the token the page has no data.
    page.context.clear_cookies()
    page.goto(address.replace("a-secret/", ""))
    wait_for(page, "needs the token")


def test_the_report_is_the_same_page(run, serve, page):
    """What report.html shows from inside is what `assay serve` shows of the same run."""
    run.go(["echo", "wrong"], size=70, run="earlier")
    run.go(["echo", "echo", "wrong", "wrong", "crash"], size=3)
    tables = ["#outcomes", "#findings", "#cases", "#apis", "#dtypes", "#runs"]
    pictures = ["#history", "#runs-chart"]

    def shown():
        wait_for(page, "5 of 5 cases (100.0%)")
        wait_for(page, "3 found · 3 of 3 read")
        page.locator("#runs td", has_text="earlier").first.wait_for(timeout=60_000)
        # `assay serve` reads the stages of only some passed cases.
        assert page.locator("#stages rect").count() >= 6
        assert page.locator("#sizes rect").count() >= 6
        return [rows(page, t) for t in tables], [page.locator(f"{p} *").count() for p in pictures]

    page.goto(serve())
    live = shown()
    page.goto((run.folder / "run" / "report.html").as_uri())
    assert shown() == live
    names = [name for name, *_ in rows(page, "#runs")]
    assert names == ["earlier", "run"]
    assert page.problems == []


def test_a_case_of_the_report_can_be_run_again(run, page):
    run.go(["echo", "wrong", "crash"], size=3)
    page.goto((run.folder / "run" / "report.html").as_uri())
    wait_for(page, "2 found · 2 of 2 read")
    page.select_option("#pick", "mismatch")
    wait_for(page, "1 found")
    text, message, number, command = rows(page, "#cases")[0][1].split("\n")
    assert text == 'paddle.fake.wrong(Tensor([4], "float32"))'
    assert message
    again = subprocess.run(shlex.split(command), cwd=run.folder, capture_output=True, text=True, timeout=120)
    assert again.returncode == 1
    assert "1  mismatch" in again.stdout + again.stderr
    page.select_option("#pick", "")
    page.fill("#find-case", number.removeprefix("id "))
    wait_for(page, "1 found")
    page.fill("#find-case", "nothing has this")
    wait_for(page, "0 found")
    assert page.problems == []


def test_a_run_that_goes_on_is_shown(run, serve, page):
    """`assay api` has the folder's file open and locked meanwhile."""
    cases = [f'paddle.fake.slow(Tensor([{i}], "float32"), 0.2)' for i in range(1, 1000)]
    cases += [f'paddle.fake.wrong(Tensor([{i}], "float32"))' for i in range(1, 4)]
    going = subprocess.Popen(
        run.words(cases, "run"), cwd=run.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not (run.folder / "run" / "run.db").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        page.goto(serve())
        done = "() => last && last.listed !== undefined && last.planned - last.unfinished"
        before = wait_until(lambda: page.evaluate(done))
        wait_until(lambda: page.evaluate(done) > before + 20)
        assert page.evaluate(done) < len(cases)
        assert going.poll() is None
        assert page.locator("#trouble").is_hidden()
    finally:
        going.terminate()
        going.wait(timeout=60)
    # All that it had recorded is there, and nothing else was written.
    done = subprocess.run(
        [ASSAY, "report", run.folder / "run", "--json"], capture_output=True, text=True, timeout=60
    )
    report = json.loads(done.stdout)
    assert before + 20 < report["cases"] < len(cases)
    assert report["unfinished"] == len(cases) - report["cases"]
    assert page.problems == []
