"""The page of `assay serve` and of report.html, in a real Chromium. ASSAY_SCREENSHOT=FILE keeps a picture."""

import json
import os
import shlex
import subprocess
import time

import pytest
from looks import check_looks
from tree import ASSAY


def cells(page):
    """The cells of the table of the view, without its head and its open row."""
    script = "rows => rows.map(r => [...r.cells].map(c => c.innerText.trim()))"
    return page.eval_on_selector_all("main table.list tr[aria-rowindex]", script)


def view(page, name, **filters):
    """Goes to a view of the page by its address."""
    address = "&".join(f"{key}={value}" for key, value in {"view": name, **filters}.items())
    page.evaluate("address => { location.hash = address; }", address)
    page.wait_for_timeout(100)


def wait_for(page, text):
    page.get_by_text(text).first.wait_for(timeout=60_000)


def wait_until(look):
    """What `look` gives, once that is something."""
    deadline = time.monotonic() + 60
    while not (seen := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert seen
    return seen


def verdict(page):
    return page.locator("h1").inner_text().split("\n")


def open_report(run, page, name="run"):
    page.goto((run.folder / name / "report.html").as_uri())
    page.locator("main > :not([hidden])").first.wait_for(timeout=60_000)


def test_the_verdict_is_the_first_line(run, page):
    run.go(["echo", "echo", "wrong", "wrong", "crash"], size=3)
    open_report(run, page)
    assert verdict(page) == ["✕ fails", "✕ 3 failed", "2 findings", "✓ 2 passed"]
    assert [[r[0], r[2]] for r in cells(page)] == [
        ["✕ paddle.fake.crash", "1"],
        ["✕ paddle.fake.wrong", "2"],
    ]
    view(page, "apis")
    rates = {row[0]: row[1:3] for row in cells(page)}
    assert rates["paddle.fake.echo"] == ["100.00%", "2"]
    assert rates["paddle.fake.wrong"] == ["0.00%", "2"]
    # A run against a past one: what is new comes first.
    words = run.words([f'paddle.fake.{api}(Tensor([3], "float32"))' for api in ("raises", "wrong")], "new")
    subprocess.run([*words, "--against=run"], cwd=run.folder, capture_output=True, timeout=120, check=False)
    open_report(run, page, "new")
    assert verdict(page) == ["✕ fails", "▲ 1 new", "● 1 known"]
    assert [[r[0], r[4], r[5]] for r in cells(page)] == [
        ["▲ paddle.fake.raises", "▲ new", "this run"],
        ["● paddle.fake.wrong", "● known", "run"],
    ]
    # How long it took stands beside the past run's. Both are known to the minute.
    assert "was under 1 min" in page.locator(".tiles").inner_text()
    assert page.evaluate("run.runs.map(r => r.duration_ms % 60000)") == [0, 0]
    page.evaluate(
        "put({...run, runs: run.runs.map(r => r.name === 'run' ? {...r, duration_ms: 7200000} : r)})"
    )
    assert "was 2 h 0 min" in page.locator(".tiles").inner_text()
    view(page, "history")
    durations = [row.split("\t")[5] for row in page.locator("main tbody tr").all_inner_texts()]
    assert durations[1] == "2 h 0 min" and durations[0].endswith(" min")
    view(page, "findings")
    gone = {"api": "paddle.fake.gone", "digest": "d", "cases": 1, "outcome": "crash", "where": "", "how": ""}
    page.evaluate("gone => put({...run, against: {...run.against, fixed: [gone]}})", gone)
    assert verdict(page)[3] == "✓ 1 fixed"
    page.get_by_role("button", name="fixed 1").click()
    assert [r[0] for r in cells(page)] == ["✓ paddle.fake.gone"]
    assert not page.problems


def test_the_first_screen_says_what_fails_why_and_what_to_do(run, page):
    page.set_viewport_size({"width": 1400, "height": 900})
    run.go(["echo", "wrong", "wrong", "crash", "raises"], size=3)
    open_report(run, page)
    answers = page.locator("header .answers")
    lines = answers.locator("li").all_inner_texts()
    assert [line.split()[1] for line in lines[:3]] == [
        f"paddle.fake.{a}" for a in ("crash", "raises", "wrong")
    ]
    assert "SIGSEGV" in lines[0] and "result differs: got " in lines[2] and ", expected " in lines[2]
    assert "--api_config='paddle.fake.crash(" in answers.locator("pre").inner_text()
    bottom = page.locator("main tbody tr").first.bounding_box()
    assert bottom["y"] + bottom["height"] < 900  # and the first finding of the list
    answers.get_by_role("link", name="wrong").click()
    assert "Got" in page.locator(".detail").inner_text()
    run.go(["echo"], size=3, run="good")
    open_report(run, page, "good")
    assert verdict(page) == ["✓ passes", "✓ 1 passed"] and answers.count() == 0
    assert not page.problems


def test_lanes_of_one_build_both_name_it(run, page):
    run.go(["echo"], size=3)
    open_report(run, page)
    page.evaluate(
        """put({...run, properties: {...run.properties, 'test.lane': 'a', 'a.build': '3.3.1',
             'reference.lane': 'b', 'test.framework': 'paddle', 'reference.framework': 'paddle'}})"""
    )
    assert page.locator("header").inner_text().count("paddle 3.3.1") == 2


def test_runs_of_one_minute_stand_in_their_order(run, page):
    for name in ("c", "a", "b"):
        run.go(["echo"], size=3, run=name)
    open_report(run, page, "b")
    assert page.evaluate("run.runs.map(r => r.name)") == ["c", "a", "b"]


def test_cases_without_a_kernel_do_not_lower_the_pass_rate(run, page):
    run.go(["echo", "echo"], size=3)
    open_report(run, page)
    page.evaluate("put({...run, outcomes: {pass: 2, no_kernel: 8}})")
    assert page.locator(".tiles").inner_text().split("\n")[1].startswith("100.00% of 2 judged")
    page.evaluate("put({...run, outcomes: {no_kernel: 8}, findings: [], verdict: null})")
    assert verdict(page) == ["○ Nothing was judged"]


def test_stages_have_axes(run, page):
    long = "fused_rotary_position_embedding.of_a_family_with_a_name_without_end.echo"
    run.go([long, long, "echo"], size=3)
    open_report(run, page)
    view(page, "time")
    heads = page.eval_on_selector_all(
        "table.heat", "all => all.map(t => [...t.rows].map(r => [...r.cells].map(c => c.innerText)))"
    )
    assert heads[0][0][:5] == ["size", "cases", "seconds", "fill", "test forward"]
    assert {row[0]: row[1] for row in heads[1][1:]} == {f"paddle.fake.{long}": "2", "paddle.fake.echo": "1"}
    # The axis of the histogram has its unit.
    assert "ms" in page.locator("figure svg").last.text_content()


@pytest.mark.parametrize(
    ("mode", "lanes"), [("paddle_gpu_performance", 1), ("paddle_torch_gpu_performance", 2)]
)
def test_times_of_one_lane_are_compared_with_nothing(run, page, mode, lanes):
    words = run.words(['paddle.fake.echo(Tensor([2000], "float32"))'], "run")
    timed = [*words, f"--{mode}=True", "--timing_seconds=0.5"]
    subprocess.run(timed, cwd=run.folder, capture_output=True, timeout=120, check=False)
    open_report(run, page)
    view(page, "time")
    heads = page.eval_on_selector("main table", "t => [...t.rows[0].cells].map(c => c.textContent)")
    beside = ["Test lane", "Reference lane", "Test to reference", ""] if lanes == 2 else ["Time"]
    assert heads == ["Case", "What", *beside]
    assert page.get_by_text("Test lane to reference lane").count() == lanes - 1
    assert not page.problems


def test_changed_times_are_shown(run, page):
    case = 'paddle.fake.takes(Tensor([3], "float32"), 1000, 0)'
    timed = ["--paddle_gpu_performance=True", "--timing_seconds=5"]
    settings = run.folder / "assay.toml"
    usual = settings.read_text()
    for name, pace, against in (("old", "1", []), ("new", "1.3", ["--against=old"])):
        settings.write_text(usual.replace('fake"]', f'fake", "ASSAY_FAKE_PACE={pace}"]'))
        words = [*run.words([case], name), *timed, *against]
        subprocess.run(words, cwd=run.folder, capture_output=True, timeout=120, check=False)
    open_report(run, page, "old")
    view(page, "time")
    assert page.get_by_text("Changed times").count() == 0
    open_report(run, page, "new")
    assert verdict(page)[:2] == ["✕ fails", "✕ 1 slower"]
    view(page, "time")
    section = page.locator("h2", has_text="Changed times")
    rows = section.locator("xpath=following::table[1]").locator("tbody tr")
    assert rows.nth(0).locator("td").all_inner_texts() == [
        case, "forward host warm", "1.3 ms", "1 ms", "1.300 times as long (1.300 to 1.300)", "✕ slow"
    ]  # fmt: skip
    assert page.locator("svg g.slow .line").count() == 1
    assert not page.problems


def test_a_run_is_shown_and_grows(run, serve, page):
    run.go(["echo", "echo", "wrong", "wrong", "crash"], size=3)
    page.goto(serve())
    wait_for(page, "5 cases")
    assert verdict(page) == ["✕ fails", "✕ 3 failed", "2 findings", "✓ 2 passed"]
    # Without a reload.
    run.go(["echo", "raises"], size=50)
    wait_for(page, "7 cases")
    assert {r[0] for r in cells(page)} == {f"✕ paddle.fake.{a}" for a in ("wrong", "crash", "raises")}
    page.locator("[data-search]").fill("raises")
    wait_for(page, "1 shown")
    assert [r[0] for r in cells(page)] == ["✕ paddle.fake.raises"]
    if wanted := os.environ.get("ASSAY_SCREENSHOT"):
        page.screenshot(path=wanted, full_page=True)
    assert page.problems == []


def test_texts_are_texts(run, serve, page):
    run.go(["echo"], size=3)
    page.goto(serve())
    wait_for(page, "1 case")
    evil = '<img src=x onerror="document.title=1">'
    page.evaluate(
        """evil => {
           ask = () => {};
           const texts = ['api', 'outcome', 'where', 'how', 'text', 'message', 'shrunk', 'script', 'issue'];
           const input = {name: evil, type: evil, value: evil};
           const finding = {
             ...Object.fromEntries(texts.map(key => [key, evil])), digest: 'd', cases: 1, last_ms: 0,
             values: [evil], dtypes: [evil], since: {name: evil}, upstream: 'javascript:alert(1)',
             element: {where: evil, got: evil, expected: evil, inputs: [input]},
           };
           const columns = ['id', 'outcome', 'kinds', 'lane', 'flags', 'text', 'message'];
           parts = [Object.fromEntries(columns.map(c => [c, [evil]]))];
           const own = {name: evil, build: evil, last_ms: 0, outcomes: {pass: 1}};
           put({
             ...run, name: evil, findings: [finding], runs: [own, own], listed: 1, properties: {[evil]: evil},
             not_judged: {skipped: [[evil, 1]], regimes: [[evil, evil, 1]]},
             apis: [{...run.apis[0], api: evil, seconds: 1, stage_ms: run.stages.map(() => 1)}],
           });
           state.set({open: 'd'});
        }""",
        evil,
    )
    assert evil in cells(page)[0][0]
    assert page.locator(".detail").inner_text().count(evil) >= 6
    for name in ("cases", "apis", "values", "time", "unjudged", "history"):
        view(page, name)
        assert evil in page.locator("main").text_content(), name
        assert page.locator("img").count() == 0 and page.locator("a[href^=javascript]").count() == 0


def test_the_printed_address_gives_a_cookie(run, serve, page):
    run.go(["echo"], size=3)
    address = serve("--host=0.0.0.0", ASSAY_SERVE_TOKEN="a-secret")
    assert "0.0.0.0" not in address  # no browser of a colleague could open that
    assert address.endswith("/a-secret/")
    page.goto(address)
    wait_for(page, "1 case")
    assert "a-secret" not in page.url
    [cookie] = page.context.cookies()
    assert cookie["value"] == "a-secret" and cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    page.reload()
    wait_for(page, "1 case")
    # Without the token the page has no data.
    page.context.clear_cookies()
    page.goto(address.replace("a-secret/", ""))
    wait_for(page, "needs the token")


def test_the_report_is_the_same_page(run, serve, page):
    """What report.html shows from inside is what `assay serve` shows of the same run."""
    run.go(["echo", "wrong"], size=70, run="earlier")
    run.go(["echo", "echo", "wrong", "wrong", "crash"], size=3)

    def shown():
        wait_for(page, "5 cases")
        page.get_by_role("link", name="History").wait_for(timeout=60_000)
        seen = [verdict(page), cells(page)]
        for name in ("cases", "apis", "unjudged", "history"):
            view(page, name)
            if name == "cases":
                wait_for(page, "3 shown")
            seen.append(page.locator("main").inner_text())
        return seen

    page.goto(serve())
    live = shown()
    open_report(run, page)
    assert shown() == live
    assert page.locator("main tbody tr").all_inner_texts()[1].startswith("earlier")
    # A finding that earlier runs also have says since when.
    view(page, "findings")
    assert {r[0]: r[4] for r in cells(page)} == {
        "✕ paddle.fake.wrong": "earlier",
        "✕ paddle.fake.crash": "this run",
    }
    assert page.problems == []


def test_a_finding_opens_with_what_an_engineer_needs(run, page):
    run.go(["echo", "wrong", "crash"], size=3)
    open_report(run, page)
    page.get_by_role("button", name="paddle.fake.wrong").click()
    detail = page.locator(".detail")
    for words in (
        "Got",
        "Expected",
        "Run it again",
        "Value regimes",
        'paddle.fake.wrong(Tensor([4], "float32"))',
    ):
        assert words in detail.inner_text()
    command = detail.locator("pre[aria-label='Run it again']").inner_text()
    again = subprocess.run(shlex.split(command), cwd=run.folder, capture_output=True, text=True, timeout=120)
    assert again.returncode == 1
    assert "1  mismatch" in again.stdout + again.stderr
    # The log is beside the report.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    log = detail.locator("dd a").first
    assert (run.folder / "run" / log.get_attribute("href")).exists()
    detail.get_by_role("button", name="Copy").first.click()
    wait_for(page, "Copied")
    view(page, "cases", outcome="mismatch")
    [[text, outcome, _]] = cells(page)
    assert text == 'paddle.fake.wrong(Tensor([4], "float32"))' and outcome == "✕ mismatch"
    view(page, "cases", q="nothing has this")
    wait_for(page, "Nothing matches")
    assert page.problems == []


def test_tasks_which_failure_is_new_and_what_shows_it(run, page):
    run.go(["echo", "wrong"], size=3, run="earlier")
    words = run.words(
        [f'paddle.fake.{api}(Tensor([3], "float32"))' for api in ("wrong", "raises", "echo")], "run"
    )
    subprocess.run(
        [*words, "--against=earlier"], cwd=run.folder, capture_output=True, timeout=120, check=False
    )
    open_report(run, page)
    [first] = [r for r in cells(page) if "▲ new" in r]  # without a click
    assert first[0] == "▲ paddle.fake.raises" and cells(page)[0] == first
    page.locator(".opener").first.click()
    assert (
        page.locator(".detail pre[aria-label=Case]").inner_text()
        == 'paddle.fake.raises(Tensor([3], "float32"))'
    )


def test_scripts_and_logs_come_on_demand(run, serve, page):
    run.go(["echo", "wrong"], size=3)
    open_report(run, page)
    inside = page.evaluate("[run.findings[0].script, run.findings[0].digest]")
    page.evaluate("delete run.findings[0].script; state.set({open: run.findings[0].digest})")
    command = page.locator("pre[aria-label='Write its script']").inner_text()
    done = subprocess.run(
        shlex.split(command), cwd=run.folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert inside[1] in command and "usage" not in done.stderr, done.stderr
    page.goto(serve())
    page.locator(".opener").first.click()
    page.locator("dd a").first.wait_for()
    assert (
        page.evaluate("document.querySelector('[aria-label=\"Script without assay\"]')?.textContent || ''")
        == inside[0]
    )
    with page.context.expect_page() as log:
        page.locator("dd a", has_text="slot").first.click()
    assert "slot" in log.value.url
    for path in ("log/..%2Frun.db", "log/../run.db", "finding/none"):
        assert page.evaluate("p => fetch(p).then(r => r.text())", path) in ("not found\n", "{}")
    assert not [p for p in page.problems if "404" not in p]


def test_addresses_lead_back(run, page):
    """Filters, sorting and the open row are in the address."""
    run.go(["echo", "wrong", "crash", "raises"], size=3)
    open_report(run, page)
    page.locator("[data-search]").fill("paddle")
    page.get_by_role("button", name="mismatch 1").click()
    page.get_by_role("button", name="Cases").click()
    page.get_by_role("button", name="paddle.fake.wrong").click()
    parts = ("q=paddle", "outcome=mismatch", "sort=cases", "open=")
    page.wait_for_url(lambda url: all(part in url for part in parts))
    shown = page.locator("main").inner_text()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.locator(".detail").wait_for()
    assert page.locator("main").inner_text() == shown


def test_the_keyboard_does_it_all(run, page):
    run.go(["echo", "wrong", "crash", "raises"], size=3)
    open_report(run, page)
    focused = "() => document.activeElement.textContent"
    page.keyboard.press("/")
    page.keyboard.type("fake")
    wait_until(lambda: "q=fake" in page.evaluate("location.hash"))
    assert page.evaluate("() => document.activeElement.value") == "fake"
    page.keyboard.press("Tab")
    rows = [row[0] for row in cells(page)]
    for key, row in (("j", 0), ("j", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        assert rows[row] in page.evaluate(focused)
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 1
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 0
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0


VIEWS = ("findings", "cases", "apis", "values", "time", "unjudged", "history")


def test_every_view_is_accessible_and_fits_a_phone(run, page):
    run.go(["echo", "wrong"], size=70, run="earlier")
    run.go(["echo", "echo", "wrong", "wrong", "crash"], size=3)
    for width, scheme in ((1400, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        open_report(run, page)
        for name in VIEWS:
            view(page, name)
            if name in ("findings", "cases", "apis"):
                page.locator(".opener").first.click()
            page.mouse.move(0, 0)
            check_looks(page, f"{name} {width}")


def test_chinese_browsers_get_chinese(run, page):
    run.go(["echo", "wrong"], size=3)
    page.add_init_script("Object.defineProperty(navigator, 'language', {value: 'zh-CN'})")
    open_report(run, page)
    assert verdict(page) == ["✕ 不通过", "✕ 1 失败", "1 个问题", "✓ 1 通过"]
    assert page.locator("html").get_attribute("lang") == "zh-CN"


@pytest.mark.slow
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
        done = "() => run && run.listed !== undefined && run.planned - run.unfinished"
        before = wait_until(lambda: page.evaluate(done))
        wait_until(lambda: page.evaluate(done) > before + 20)
        assert page.evaluate(done) < len(cases)
        assert going.poll() is None
        assert page.locator(".trouble").count() == 0
        assert "cases/s" in page.locator("#progress").inner_text()
        wait_until(lambda: page.locator("#running").count())
        page.locator("#running summary").click()
        assert "paddle.fake.slow(Tensor([" in page.locator("#running td").first.inner_text()
        check_looks(page, "live")
    finally:
        going.terminate()
        going.wait(timeout=60)
    assert not (run.folder / "run" / "running.json").exists()
    # All that it had recorded is there, and nothing else was written.
    done = subprocess.run(
        [ASSAY, "report", run.folder / "run", "--json"], capture_output=True, text=True, timeout=60
    )
    report = json.loads(done.stdout)
    assert before + 20 < report["cases"] < len(cases)
    assert report["unfinished"] == len(cases) - report["cases"]
    assert page.problems == []
