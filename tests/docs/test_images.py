"""The pictures of docs/images are of today's pages."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
STAMP = IMAGES / "pages.sha256"


def page_sources() -> str:
    """A hash of what the pages are made of."""
    sources = sorted((ROOT / "src" / "pages" / "files").iterdir())
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def test_the_pictures_are_of_todays_pages():
    assert STAMP.read_text().strip() == page_sources(), (
        "src/pages/files has changed: run `make demo` and `.venv/dev/bin/python tools/page-shots --docs`"
    )
