"""The pages of chains and of their campaigns, in a real Chromium."""

import shutil
import subprocess

import pytest
from looks import check_looks, chromium_page
from tree import ASSAY, ROOT

EXAMPLE = ROOT / "examples" / "chain"
STORE = "test_tipc/assay/line/train_infer_python/lite_train_lite_infer/chain.db"


def assay(folder, *words):
    return subprocess.run(
        [ASSAY, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A chain that passed, its next run without an export script, and a campaign of both."""
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    folder = tmp_path_factory.mktemp("chain") / "model"
    shutil.copytree(EXAMPLE, folder)
    run = ("chain", "run", "train_infer_python.txt", "lite_train_lite_infer")
    assert assay(folder, *run).returncode == 0
    assert assay(folder, "chain", "report", STORE, "--out", "good.html").returncode == 0
    (folder / "export.py").rename(folder / "gone.py")
    assert assay(folder, *run).returncode == 1
    assert assay(folder, "chain", "report", STORE, "--out", "bad.html").returncode == 0
    (folder / "gone.py").rename(folder / "export.py")
    params = (folder / "train_infer_python.txt").read_text()
    broken = params.replace("export.py", "gone.py").replace("model_name:line", "model_name:broken")
    (folder / "train_infer_broken.txt").write_text(broken)
    assert assay(folder, "run", "models.toml").returncode == 1
    return folder


@pytest.fixture
def page():
    with chromium_page() as opened:
        yield opened


def opened(page, file, address=""):
    page.goto("about:blank")
    page.goto(file.as_uri() + address)
    page.locator("main > :not([hidden])").first.wait_for()


def test_a_failed_stage_shows_why(folder, page):
    opened(page, folder / "bad.html")
    assert page.locator("h1").inner_text().split("\n") == ["✕ fails", "✕ 1 failed", "✓ 2 of 4 stages passed"]
    [stage, command] = page.locator(".answers li").all_inner_texts()  # without a click
    assert stage.startswith("✕ norm_export exit code 2") and "No such file" in stage
    assert "export.py" in command
    page.get_by_role("button", name="export").click()
    detail = page.locator(".detail")
    assert "export.py" in detail.locator("pre[aria-label=Command]").inner_text()
    [error] = detail.locator("mark").all_inner_texts()  # the line of the log that matters
    assert "No such file" in error
    address = page.url
    opened(page, folder / "good.html")
    assert page.locator("h1").inner_text().split("\n") == ["✓ passes", "✓ 4 of 4 stages passed"]
    page.goto(address)
    assert page.locator(".detail").count() == 1
    assert not page.problems


def test_curves_have_the_last_good_run_behind_them(folder, page):
    opened(page, folder / "bad.html", "#view=curves")
    figure = page.locator("figure", has_text="Loss · norm_train")
    assert figure.locator(".legend").inner_text().split() == "last run that passed this run".split()
    assert figure.locator("svg path").count() == 2
    assert "reading" in figure.locator("svg").text_content()


def test_a_campaign_is_a_matrix(folder, page):
    opened(page, folder / "assay-chain" / "night" / "index.html")
    heads = page.locator("thead th").all_inner_texts()
    assert heads[1:5] == ["train", "eval", "export", "infer"]
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()[:4]
        for row in page.locator("tr.item").all()
    }
    assert [v for k, v in rows.items() if "broken" in k] == [["✓", "✓", "✕", "○"]]
    assert [v for k, v in rows.items() if "python" in k] == [["✓", "✓", "✓", "✓"]]
    assert page.locator("h1").inner_text().split("\n")[:2] == ["✕ fails", "▲ 1 new"]
    assert "broken" in page.locator(".answers li").inner_text()
    assert page.locator(".answers").get_by_role("link", name="Log").count() == 1
    page.locator(".opener").first.click()
    log = page.locator(".detail dd a").first.get_attribute("href")
    assert (folder / "assay-chain" / "night" / log).exists()
    assert not page.problems


def test_task_which_model_lost_its_export_and_why(folder, page):
    opened(page, folder / "assay-chain" / "night" / "index.html")
    [row] = [r for r in page.locator("tr.item").all() if r.locator("td").all_inner_texts()[2] == "✕"]
    assert "broken" in row.inner_text() and "can't open file" in row.inner_text()  # without a click
    assert "norm_export failed: exit code 2: …/python" in row.inner_text()
    row.get_by_role("button").click()
    assert "gone.py': [Errno 2] No such file" in page.locator(".detail table").inner_text()
    head, first = (page.locator(f".detail {part} tr").first.bounding_box() for part in ("thead", "tbody"))
    assert head["y"] + head["height"] <= first["y"] + 1  # the head of the inner table covers no row
    page.get_by_role("link", name="Failures").click()
    page.locator(".detail").first.wait_for(state="detached")  # the view before has such links, too
    page.locator("td a", has_text="broken").click()  # a failure leads to its model
    page.locator(".detail table").wait_for()
    assert page.locator(".detail table").count() == 1


def test_a_run_stands_beside_its_goldens(folder, page):
    run = ("chain", "run", "train_infer_python.txt", "lite_train_lite_infer")
    assert assay(folder, *run).returncode == 0
    assert assay(folder, "chain", "record", STORE, "--build=1").returncode == 0
    assert assay(folder, *run).returncode == 0
    assert assay(folder, "chain", "report", STORE, "--out", "golden.html").returncode == 0
    opened(page, folder / "golden.html", "#view=goldens")
    rows = [r.locator("td").all_inner_texts() for r in page.locator("tbody tr").all()]
    loss = next(r for r in rows if r[:2] == ["norm_train", "loss"])
    assert loss[2] == "✓ good" and loss[3] == loss[4] and loss[6] == "2"  # the example's losses repeat
    check_looks(page, "goldens")
    view = page.locator("figure", has_text="Loss · norm_train")
    page.get_by_role("link", name="Curves").click()
    assert "golden" in view.locator(".legend").inner_text()
    speed = page.locator("figure", has_text="Samples per second")
    speed.locator("svg .band").wait_for()
    assert "Tolerance" in speed.locator(".legend").inner_text()
    assert speed.locator("svg .base").count() == 1
    assert not page.problems


def test_every_view_is_accessible_and_fits_a_phone(folder, page):
    night = folder / "assay-chain" / "night" / "index.html"
    views = [
        (folder / "bad.html", "stages"),
        (folder / "bad.html", "curves"),
        (night, "models"),
        (night, "failures"),
    ]
    for width, scheme in ((1400, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        for file, view in views:
            opened(page, file, f"#view={view}")
            for opener in page.locator(".opener").all()[:1]:
                opener.click()
            check_looks(page, f"{view} {width}")


def test_names_stay_text(folder, page):
    evil = "<img src=x onerror=alert(1)>"
    text = (folder / "bad.html").read_text()
    (folder / "evil.html").write_text(
        text.replace("No such file", evil.replace("<", "\\u003c").replace(">", "\\u003e"))
    )
    opened(page, folder / "evil.html")
    page.get_by_role("button", name="export").click()
    assert evil in page.locator(".detail").inner_text()
    assert page.locator("img").count() == 0
