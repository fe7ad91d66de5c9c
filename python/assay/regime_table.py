"""Which families of APIs are judged under which value regimes, by dtype. This command writes the page:

python -m assay.regime_table FILE
"""

import os
import textwrap
from collections import defaultdict

from assay.known_deviation_page import write
from assay.regimes import USUAL, skip_of
from assay.registry import Api, load_all
from assay.shared import REGIMES
from assay.spec import TensorSpec
from assay.torch_cases.special_formulas import names

KINDS = {"F": "float32", "H": "float16", "C": "complex64", "I": "int32", "B": "bool"}
SHAPE = (64, 80)  # long enough for the regime `constant`
OTHERS = [regime for regime in REGIMES if regime != USUAL]


def judged(entry: Api, regime: str, dtype: str) -> str | None:
    """Empty if a call with a tensor of this dtype is judged, or else the reason; None if the values would be
    the usual ones, or if that depends on more than one argument."""
    named = {(entry.inputs or entry.parameters)[0]: TensorSpec(SHAPE, dtype, 0)}
    try:
        skip = skip_of(entry, named, regime)
    except Exception:  # a rule asks for other arguments
        return None
    return "" if skip is None else skip.reason or None


def page(apis: dict[str, Api]) -> str:
    """The text of the page, in Markdown."""
    families: dict[str, list[Api]] = defaultdict(list)
    for entry in apis.values():
        if entry.parameters and not entry.kind and not entry.skip:
            families[entry.family].append(entry)
    lines = [
        "# Families and value regimes",
        "",
        "`python -m assay.regime_table` generates this page, and a test checks that it is current.",
        "",
        "A letter means that some API of the family is judged under the regime with a tensor of this dtype:",
        "F float32 and float64, H half precision, C complex, I integers, B bool. Functions whose rules need",
        "more than one argument are left out. Every family is judged under usual values.",
        "[Value regimes](value-regimes.md) explains the columns; the reasons follow the table.",
        "",
        f"| family | {' | '.join(OTHERS)} |",
        f"|---|{'---|' * len(OTHERS)}",
    ]
    reasons: dict[str, set[str]] = defaultdict(set)
    for family, entries in sorted(families.items()):
        cells = []
        for regime in OTHERS:
            said = {kind: [judged(each, regime, dtype) for each in entries] for kind, dtype in KINDS.items()}
            cells.append("".join(kind for kind in KINDS if "" in said[kind]))
            for kind in KINDS:
                if "" not in said[kind]:
                    reasons[regime] |= {reason for reason in said[kind] if reason}
        lines.append(f"| {family} | {' | '.join(cells)} |")
    lines += ["", "## Reasons"]
    for regime in OTHERS:
        lines += ["", f"**{regime}**", "", *(f"- {reason}" for reason in sorted(reasons[regime]))]
    lines += [
        "",
        "## Independent truths",
        "",
        "For Paddle's functions the truth is PyTorch's. PyTorch's own functions are compared with PyTorch in",
        "float64, which may share a fault. The truth of these, by their last names, is a formula:",
        "",
        *textwrap.wrap(", ".join(f"`{name}`" for name in names()), 110),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    os.environ.pop("ASSAY_FRAMEWORK", None)  # the tables need no framework for that
    write(page(load_all()))
