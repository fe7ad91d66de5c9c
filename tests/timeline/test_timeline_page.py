"""The page of `assay timeline analyze`, in a real Chromium."""

import json
import subprocess

import pytest
from looks import check_looks, chromium_page
from tree import ASSAY

EVIL = "<img src=x onerror=alert(1)>"


def kernel(name, begin, took, rank, stream=7):
    where = {"device": rank, "stream": stream, "correlation": begin}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "ts": begin,
        "dur": took,
        "pid": rank,
        "tid": stream,
        "args": where,
    }


def trace_of(rank, slow_step=None, late=None, name="gemm"):
    """A trace of PyTorch's profiler: five steps of 1,000 µs, in each a kernel and an all-reduce. The rank
    `late` begins each all-reduce 150 µs after the others."""
    events, at = [], 0
    for step in range(5):
        length = 2000 if step == slow_step else 1000
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{step}",
                "ts": at,
                "dur": length,
                "pid": 99,
                "tid": 1,
            }
        )
        if step == slow_step:
            events.append({**events[-1], "name": "save_checkpoint", "ts": at + 1250, "dur": 700})
        behind = 150 if rank == late else 0
        events.append(kernel(f"{name} {EVIL}", at + 10, length // 2 + behind, rank))
        reduce = ("ncclDevKernel_AllReduce", at + 20 + length // 2 + behind, 200 - behind)
        events.append(kernel(*reduce, rank, 20))
        at += length
    return {"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": 2}}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    folder = tmp_path_factory.mktemp("timeline")
    for rank in range(2):
        (folder / f"rank{rank}.json").write_text(json.dumps(trace_of(rank, slow_step=3)))
    command = [ASSAY, "timeline", "analyze", *sorted(folder.glob("rank*.json")), "--format=html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "page.html").write_text(done.stdout)
    return folder / "page.html"


@pytest.fixture
def page(file):
    with chromium_page() as opened:
        opened.goto(file.as_uri())
        opened.locator("canvas").first.wait_for()
        yield opened


def view(page, name):
    page.evaluate("name => { location.hash = `view=${name}`; }", name)
    page.wait_for_timeout(100)


def test_answers_come_first_and_lead_to_their_place(page):
    answer = page.locator(".answers li", has_text="1 of 5 steps")
    assert "step 3" in answer.inner_text()
    answer.get_by_role("link", name="step 3").click()
    page.wait_for_timeout(200)
    # Steps 0 to 2 take 3 ms; the slow one begins there.
    assert page.evaluate("[view.from, view.to]") == [2_990_000, 4_990_000] or page.evaluate(
        "Math.abs(view.from - 3e6) < 2e4 && Math.abs(view.to - 5e6) < 2e4"
    )


def test_a_gap_leads_to_what_its_host_did(page):
    hosts = page.evaluate("D.rows.filter(r => r.host).map(r => [...r.begin].map((_, i) => nameOf(r, i)))")
    assert [names.count("save_checkpoint") for names in hosts] == [1, 1]
    row = (
        "D.rows.find(r => r.waits && [...r.begin].some((_, i) => nameOf(r, i).endsWith(': save_checkpoint')))"
    )
    at = f"[...{row}.begin.keys()].find(i => nameOf({row}, i).endsWith('checkpoint'))"
    x, y = page.evaluate(
        f"""[left() + ({row}.begin[{at}] + {row}.end[{at}]) / 2 / D.span *
        (document.querySelector('.drawing canvas:last-child').clientWidth - left()), {row}.y + 6]"""
    )
    page.locator(".drawing canvas").last.click(position={"x": x, "y": y})
    begin, end = page.evaluate("[view.from, view.to]")  # three times the gap
    assert begin < 4.25e6 < 4.95e6 < end < 5.8e6


def test_keys_and_mouse_zoom_and_move(page):
    page.locator(".drawing").focus()
    whole = page.evaluate("view.to - view.from")
    page.keyboard.press("+")
    zoomed = page.evaluate("view.to - view.from")
    assert zoomed < whole and "from=" in page.evaluate("location.hash")
    begin = page.evaluate("view.from")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("view.from") > begin
    address = page.evaluate("location.href")
    shown = page.evaluate("[view.from, view.to]")
    page.goto("about:blank")
    page.goto(address)
    page.locator("canvas").first.wait_for()
    assert page.evaluate("[view.from, view.to].map(Math.round)") == [round(v) for v in shown]
    page.locator(".drawing").focus()
    page.keyboard.press("0")
    assert page.evaluate("view.to - view.from") == whole
    # A marked time shows its sums: all kernels of the whole trace.
    box = page.locator("canvas").last.bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 190, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 60)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_timeout(200)
    assert "communication 2 ms" in page.locator(".sums").inner_text()  # 2 ranks × 5 × 200 µs


def test_the_overview_lines_up_with_the_tracks(page):
    """A place in it is the time that the drawing has there while it shows everything."""
    over, drawing = page.locator("canvas").first.bounding_box(), page.locator("canvas").last.bounding_box()
    assert (over["x"], over["width"]) == (drawing["x"], drawing["width"])
    whole, left = page.evaluate("D.span"), page.evaluate("left()")
    page.keyboard.press("0")
    page.evaluate("move(0, D.span / 10)")
    page.mouse.click(over["x"] + left + (over["width"] - left) / 2, over["y"] + 16)
    middle = page.evaluate("(view.from + view.to) / 2")
    assert abs(middle - whole / 2) < whole / 200


def test_two_fingers_zoom(page):
    """The times below the fingers stay below them."""
    box = page.locator("canvas").last.bounding_box()
    fingers = page.context.new_cdp_session(page)
    x, y = box["x"] + 500, box["y"] + 60

    def touch(kind, *places):
        points = [{"x": place, "y": y, "id": i} for i, place in enumerate(places)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    time_at = "x => view.from + (x - left()) / (innerWidth - 2 * document.querySelector('canvas')"
    time_at += ".getBoundingClientRect().x - left()) * (view.to - view.from)"
    whole = page.evaluate("view.to - view.from")
    below = [page.evaluate(time_at, place - box["x"]) for place in (x, x + 100)]
    touch("touchStart", x)
    touch("touchStart", x, x + 100)
    touch("touchMove", x - 50, x + 150)
    shown = page.evaluate("view.to - view.from")
    now = [page.evaluate(time_at, place - box["x"]) for place in (x - 50, x + 150)]
    touch("touchEnd")
    assert abs(shown - whole / 2) < whole / 100
    assert all(abs(a - b) < whole / 200 for a, b in zip(below, now, strict=True))
    # One finger moves what is shown.
    begin = page.evaluate("view.from")
    touch("touchStart", x)
    touch("touchMove", x - 100)
    touch("touchEnd")
    assert page.evaluate("view.from") > begin


def test_kernels_sort_and_names_stay_text(page):
    view(page, "kernels")
    first = page.locator("main tr[aria-rowindex='2']")
    assert EVIL in first.inner_text()
    assert page.locator("img").count() == 0
    page.get_by_role("button", name="Calls").click()
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Calls")
    first.get_by_role("button").click()
    assert f"gemm {EVIL}" in page.locator(".detail pre").inner_text()
    assert not page.problems


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A run in which rank 2 comes late and step 3 takes twice as long, compared with one without."""
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    folder = tmp_path_factory.mktemp("two")
    for name, late, kernel_name in (("before", None, "gemm"), ("after", 2, "fused")):
        (folder / name).mkdir()
        for rank in range(4):
            trace = json.dumps(trace_of(rank, late=late, name=kernel_name))
            (folder / name / f"rank{rank}.json").write_text(trace)
    for out, words in (("one.html", []), ("two.html", ["--compare=before"])):
        command = [ASSAY, "timeline", "analyze", "after", *words, "--format=html"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        (folder / out).write_text(done.stdout)
    return folder


def test_task_which_rank_makes_others_wait(two):
    with chromium_page() as page:
        page.goto((two / "one.html").as_uri())
        answer = page.locator(".answers li", has_text="Others wait")
        assert "each for rank 2" in answer.inner_text()  # without a click
        assert "15.0% of their time" in answer.inner_text()  # 150 µs of each step of 1,000 µs
        answer.get_by_role("link", name="Show").click()  # one click: a collective with its parts on all ranks
        page.locator(".sums", has_text="rank 2 came last, others waited up to 150 µs").wait_for()
        assert "rank=2" in page.url
        assert page.evaluate("partsOf(D.rows, Number(state.get('call').split('.')[1])).length") == 4
        lanes = {
            row["l"]: row["s"]
            for row in page.evaluate(
                "D.runs[0].rows.filter(r => r.waits && r.s[2] === D.kinds.indexOf('ranks'))"
            )
        }
        assert sorted(lanes) == [f"rank {rank} · GPU {rank}" for rank in (0, 1, 3)]
        # Each of the five all-reduces waits for 150 µs.
        assert [s for s in lanes["rank 0 · GPU 0"][1::4]] == [150_000] * 5
        assert not page.problems


# Where the drawing has the part of collective 0 that rank 0 has, in pixels of its canvas.
PLACE = """() => {
  const [row, i] = partsOf(D.rows, 0).find(([r]) => r.rank === 0), width = drawing().clientWidth;
  const time = (row.begin[i] + row.end[i]) / 2;
  return {x: left() + (time - view.from) / (view.to - view.from) * (width - left()), y: row.y + row.high / 2};
}"""
# The ranks around whose part of the selected collective a frame is drawn.
FRAMED = """() => {
  const [run, call] = state.get('call').split('.').map(Number), g = drawing().getContext('2d');
  const X = ns => left() + (ns - view.from) / (view.to - view.from) * (drawing().clientWidth - left());
  const dark = ([r, g, b]) => r + g + b < 150;  // the frame has the colour of text, the part is red
  const framed = ([row, i]) => [X(row.begin[i]), X(row.end[i])].every(x =>
    dark(g.getImageData(Math.floor(x), row.y + 10, 1, 1).data));
  return partsOf(D.runs[run].rows, call).filter(framed).map(([row]) => row.rank);
}"""


def selected(page):
    """The selected collective and the ranks that show it, after the next drawing."""
    page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    return page.evaluate("state.get('call')"), page.evaluate(FRAMED)


def test_a_collective_is_shown_on_all_ranks(two):
    """By a click, by the keyboard and by its address."""
    with chromium_page() as page:
        page.goto((two / "one.html").as_uri())
        page.locator("canvas").first.wait_for()
        page.evaluate("window.drawing = () => document.querySelectorAll('.drawing canvas')[1]")
        page.locator(".drawing canvas").last.click(position=page.evaluate(PLACE))
        assert selected(page) == ("0.0", [0, 1, 2, 3])
        assert "rank 2 came last" in page.locator(".sums").inner_text()
        page.keyboard.press("c")
        assert selected(page) == ("0.1", [0, 1, 2, 3])
        page.keyboard.press("Shift+C")
        page.keyboard.press("Shift+C")
        assert selected(page)[0] == "0.4"  # the last of five
        page.keyboard.press("c")
        assert selected(page) == ("0.0", [0, 1, 2, 3])
        # A click beside it selects nothing.
        page.locator(".drawing canvas").last.click(position={"x": 8, "y": 60})
        assert page.evaluate("state.get('call')") == ""
        # Zoomed in to where it is not, the key leads to it.
        page.goto((two / "one.html").as_uri() + "#from=3000000&to=3100000")
        page.reload()
        page.locator(".drawing").focus()
        page.keyboard.press("c")
        page.evaluate("window.drawing = () => document.querySelectorAll('.drawing canvas')[1]")
        assert selected(page) == ("0.0", [0, 1, 2, 3])
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        page.locator(".sums", has_text="rank 2 came last").wait_for()
        assert not page.problems


def test_task_is_this_run_slower(two):
    with chromium_page() as page:
        page.goto((two / "two.html").as_uri())
        assert page.locator("h1").inner_text().split("\n")[1] == "no significant change"  # without a click
        answers = page.locator(".answers").inner_text()
        assert "new Kernel fused" in answers and "gone Kernel gemm" in answers
        assert page.evaluate("D.runs.map(r => r.title)") == ["before", "after"]
        page.locator(".answers li", has_text="gone").get_by_role("link").click()
        assert page.locator("tr", has_text="gemm").locator("td").all_inner_texts()[-1] == "● gone"
        assert page.locator("img").count() == 0
        for width, scheme in ((1400, "light"), (390, "dark")):
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            for name in ("timeline", "changes", "report"):
                view(page, name)
                check_looks(page, f"two {name} {width}")


def test_every_view_is_accessible_and_fits_a_phone(page, file):
    for width, scheme in ((1400, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        page.goto(file.as_uri())
        page.locator("canvas").first.wait_for()
        for name in ("timeline", "ranks", "steps", "kernels", "report"):
            view(page, name)
            check_looks(page, f"{name} {width}")


def test_a_trace_without_gpu_work_says_so(tmp_path):
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    (tmp_path / "empty.json").write_text(json.dumps({"traceEvents": []}))
    command = [ASSAY, "timeline", "analyze", tmp_path / "empty.json", "--format=html"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    (tmp_path / "page.html").write_text(done.stdout)
    with chromium_page() as page:
        page.goto((tmp_path / "page.html").as_uri())
        page.get_by_text("No GPU work to draw").wait_for()
        check_looks(page, "empty")
