"""`assay serve` of a folder of runs, and `assay runs`."""

import fcntl
import subprocess
import urllib.error
import urllib.request

from test_page import verdict, view, wait_for
from tree import ASSAY


def status_of(address):
    try:
        with urllib.request.urlopen(address) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_folder_of_nights_is_served(run, serve, page):
    run.go(["echo", "echo"], size=3, run="nights/2026-11-27")
    run.go(["echo", "wrong"], size=3, run="nights/2026-11-28 b")
    (run.folder / "run").symlink_to("nights")
    address = serve(ASSAY_SERVE_TOKEN="abc")
    page.goto(address)
    wait_for(page, "2 runs")
    assert verdict(page) == ["2026-11-28 b", "✕ 1 failed"]
    names = page.locator("main table tbody tr a")
    assert names.all_inner_texts() == ["2026-11-28 b", "2026-11-27"]  # newest first
    names.first.click()
    wait_for(page, "paddle.fake.wrong")
    page.locator("main table.list tr[aria-rowindex]").first.click()
    wait_for(page, "Script without assay")
    view(page, "history")
    page.get_by_role("link", name="2026-11-27").click()
    wait_for(page, "All judged cases passed")
    view(page, "history")
    page.get_by_role("link", name="All runs").click()
    wait_for(page, "2 runs")
    # What is no run of the folder is none of the page's, and nothing comes without the token.
    for path in ("run/../data.json", "run/%2e%2e/data.json", "run/none/data.json"):
        assert status_of(f"{address}{path}") == 404
    assert status_of(address.replace("abc/", "run/2026-11-27/")) == 403
    assert status_of(address.replace("abc/", "run/2026-11-27/data.json")) == 403


def test_old_nights_are_deleted(run):
    for night in ("a", "b", "c", "d"):
        run.go(["echo"], size=3, run=f"nights/{night}")
    nights = run.folder / "nights"
    (nights / "a" / "mine").mkdir()
    (nights / "link").symlink_to("b")

    def runs(*words, code=0):
        done = subprocess.run([ASSAY, "runs", *words], cwd=run.folder, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert [line.split()[0] for line in runs("list", "nights").splitlines()[1:]] == ["a", "b", "c", "d"]
    assert "would delete nights/b" in runs("prune", "nights", "--keep=1", "--dry-run", code=3)
    with (nights / "c" / "run.db").open("r+b") as used:
        fcntl.lockf(used, fcntl.LOCK_EX)
        shown = runs("prune", "nights", "--keep=1", code=3)
    assert shown.splitlines() == [
        "kept nights/a: its folder mine is none of assay's",
        "deleted nights/b",
        "kept nights/c: a program is using it",
    ]
    assert sorted(each.name for each in nights.iterdir()) == ["a", "c", "d", "link"]
    assert runs("prune", "nights", "--keep=2", code=3).startswith("kept nights/a")
    assert "holds no folder with a run.db" in runs("list", "nights/a", code=2)
