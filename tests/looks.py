"""A page in a real Chromium, and what every page of assay must look like there."""

import contextlib
import importlib.resources
import shutil

import pytest

# A word breaks where two boxes of its text stand on different lines.
BROKEN_WORDS = """() => {
  const broken = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const parent = node.parentElement;  // paths and values in lists of facts, and names in answers, may break
    if (!parent.checkVisibility() || parent.closest('script, style, dd, .values, .answers')) continue;
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (tops.size > 1 && !/\\p{Script=Han}/u.test(word[0])) broken.push(word[0]);
    }
  }
  return broken;
}"""
AXE = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
  .map(v => v.id + v.nodes.slice(0, 3).map(n => `: ${n.html.slice(0, 160)} ${n.failureSummary}`))"""


@contextlib.contextmanager
def chromium_page():
    """A page from which every request to another machine, and every error, is kept in `problems`."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1400, "height": 1600})
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


def check_looks(page, what):
    """No violation of axe's rules, nothing wider than the window, no word broken, no error."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    page.evaluate((importlib.resources.files(axe) / "axe.min.js").read_text())
    assert page.evaluate(AXE) == [], what
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), what
    broken = page.evaluate(BROKEN_WORDS)
    assert broken == [], f"{what}: {broken}"
    assert page.problems == [], what
