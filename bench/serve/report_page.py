"""How large the report of many cases is, and how long a real Chromium takes to open it.

    .venv/dev/bin/python bench/serve/report_page.py RUN_DIR [--cases 300000]

RUN_DIR is a run of a few thousand real cases: its cases, verdicts and records are repeated under other
texts and ids until there are as many as asked.
"""

import argparse
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import Page, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
WITHOUT_CHECKSUMS = 5  # kVersionWithoutChecksums of src/store
ASSAY = ROOT / "build" / "release" / "bin" / "assay"


def repeated(run: pathlib.Path, to: pathlib.Path, cases: int, records: bool, failed: bool) -> None:
    """A run of so many cases. Each text gets a number into its first shape, so that no two are alike."""
    source = sqlite3.connect(f"file:{run / 'run.db'}?immutable=1", uri=True)
    rows = source.execute(
        "SELECT p.text, p.elements, p.bytes, outcome, mismatch, flags, lane, message, attempts, faults, "
        "took_us, record "
        "FROM finished f JOIN planned p USING (id) ORDER BY sequence"
    ).fetchall()
    if failed:
        rows = [row for row in rows if row[3] in ("mismatch", "crash", "test_error", "timeout")]
    made = sqlite3.connect(to / "run.db")
    # Not a copy of the file, whose pages have checksums that only assay writes.
    for (statement,) in source.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"):
        made.execute(statement)
    made.execute(f"PRAGMA application_id = {source.execute('PRAGMA application_id').fetchone()[0]}")
    made.execute(f"PRAGMA user_version = {WITHOUT_CHECKSUMS}")
    made.executemany(
        "INSERT INTO property VALUES (?, ?)", source.execute("SELECT * FROM property").fetchall()
    )
    planned = "INSERT INTO planned VALUES (?, ?, ?, ?, ?)"
    finished = (
        "INSERT INTO finished (sequence, id, outcome, mismatch, flags, lane, message, attempts, faults,"
        " took_us, at_ms, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    for number in range(1, cases - cases % len(rows) + 1):  # as many as the sums below count
        text, elements, size, *verdict, record = rows[number % len(rows)]
        text = text.replace("([", f"([{1 + number // len(rows)}, ", 1)
        identity = (number * 0x9E3779B97F4A7C15) % 2**64 - 2**63
        at_ms = 1_790_000_000_000 + 3 * number
        made.execute(planned, (number, identity, text, elements, size))
        made.execute(finished, (number, identity, *verdict, at_ms, record if records else None))
    # The sums of the run, as often as its cases; with --failed, those of all cases.
    sums = source.execute("SELECT changes FROM tally").fetchall()
    made.executemany("INSERT INTO tally VALUES (?)", sums * (cases // len(rows)))
    made.commit()
    made.close()


def wait_until(page: Page, condition: str) -> None:
    while not page.evaluate(condition):  # the page's own policy forbids what Playwright would wait with
        time.sleep(0.01)


def opened(page_file: pathlib.Path) -> tuple[float, float]:
    """Seconds until the findings stand there, and until all cases have been read."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        begin = time.perf_counter()
        page.goto(page_file.as_uri(), wait_until="commit")
        wait_until(page, "document.querySelectorAll('main tr[aria-rowindex]').length > 0")
        painted = time.perf_counter() - begin
        wait_until(page, "run && parts.reduce((n, p) => n + p.id.length, 0) === run.listed")
        read = time.perf_counter() - begin
        browser.close()
    return painted, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=300_000)
    parser.add_argument("--records", action="store_true", help="with their records (17 KB a case)")
    parser.add_argument("--failed", action="store_true", help="only cases that failed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        to = pathlib.Path(folder)
        repeated(options.run, to, options.cases, options.records, options.failed)
        begin = time.perf_counter()
        subprocess.run(  # ends with 1 where a case failed
            [ASSAY, "report", to, "--every-failure", "--html", to / "page.html"],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        wrote = time.perf_counter() - begin
        megabytes = (to / "page.html").stat().st_size / 1e6
        painted, read = opened(to / "page.html")
        sys.stdout.write(
            f"{options.cases} cases: {megabytes:.1f} MB, written with the report in {wrote:.1f} s; "
            f"in Chromium findings after {painted:.2f} s, all cases that are listed after {read:.2f} s\n"
        )


if __name__ == "__main__":
    main()
