"""The page of families and value regimes."""

import pathlib

from assay import regime_table

PAGE = pathlib.Path(__file__).parents[2] / "docs/reference/regime-coverage.md"


def test_the_page_is_current(apis):
    assert PAGE.read_text() == regime_table.page(apis)


def test_the_page_says_what_is_judged(apis):
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    columns = rows[0]
    table = {row[0]: dict(zip(columns[1:], row[1:], strict=False)) for row in rows[1:]}
    assert table["unary"]["nan"] == "FH" and table["sorting"]["exact"] == "I"
    assert regime_table.judged(apis["paddle.sort"], "exact", "int32") == ""
    assert "equal elements" in regime_table.judged(apis["paddle.sort"], "exact", "float32")
