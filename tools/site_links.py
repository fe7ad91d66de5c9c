"""A hook of mkdocs: links to files outside of docs/, which the site does not have, become plain text.

They work where the repository is read.
"""

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+[^)\s]*)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text; "[notes](../../lab/x.md)" becomes "notes (`lab/x.md`)"."""
    folder = posixpath.dirname(page.file.src_uri)

    def plain(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if target.startswith("docs/"):
            return link[0]
        return link[1] if link[1].strip("`") == target else f"{link[1]} (`{target}`)"

    return LINK.sub(plain, markdown)
