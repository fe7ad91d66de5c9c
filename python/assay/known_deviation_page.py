"""Lists the known deviations of the API tables. This command writes the reference page:

python -m assay.known_deviation_page FILE
"""

import os
import sys
from typing import Any

from assay.known_deviation import KnownDeviation
from assay.registry import load_all


def told(apis: dict[str, Any]) -> dict[str, list[str]]:
    """The deviations of each API in words, as a run stores them."""
    return {
        name: [str(each) for each in api.known_deviations]
        for name, api in apis.items()
        if api.known_deviations
    }


def page(apis: dict[str, Any]) -> str:
    """The text of the page of known deviations, in Markdown."""
    names: dict[KnownDeviation, list[str]] = {}
    for name, api in sorted(apis.items()):
        for each in api.known_deviations:
            names.setdefault(each, []).append(name)
    lines = [
        "# Known deviations",
        "",
        "`python -m assay.known_deviation_page` generates this page, and a test checks that it is current.",
        "",
        "A `pass` of these APIs does not show that Paddle is right in the listed respect. Reports count",
        "their cases as known deviations. Behaviour that Paddle documents is not listed. Value regimes that",
        "are not judged are not listed either: reports give their reasons.",
        "",
        f"The tables have {len(names)} known deviations in "
        f"{sum(1 for api in apis.values() if api.known_deviations)} of {len(apis)} APIs.",
    ]
    for kind, title in (
        ("follows", "The reference follows Paddle"),
        ("avoids", "The inputs avoid a known bug"),
    ):
        lines += ["", f"## {title}", "", "| deviation | APIs | finding |", "|---|---|---|"]
        for each, among in names.items():
            if each.kind == kind:
                known = f"[yes](../findings/{each.finding}.toml)" if each.finding else ""
                lines.append(f"| {each.what} | {', '.join(f'`{name}`' for name in among)} | {known} |")
    return "\n".join(lines) + "\n"


def write(text: str) -> None:
    """Writes `text` to the file that the command line names, or prints it."""
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    os.environ.pop("ASSAY_FRAMEWORK", None)  # the tables need no framework for that
    write(page(load_all()))
