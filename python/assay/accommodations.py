"""What the tables accommodate: where a reference follows Paddle against PyTorch or mathematics, and where
inputs dodge a fault. It stands beside the API (`accommodates=`); assay.accommodated tells of all.
"""

from typing import NamedTuple


class Accommodation(NamedTuple):
    """What a table does for Paddle's sake: a pass of that API does not say that Paddle is right there."""

    kind: str  # "follows": the reference does as Paddle does; "dodges": inputs stay away from a fault
    what: str
    # Words of docs/findings.md, where it is a finding: a fault, or documentation that says otherwise.
    finding: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def follows(what: str, finding: str = "") -> Accommodation:
    """The reference does as Paddle does, whose documentation is silent or (a finding) says otherwise."""
    return Accommodation("follows", what, finding)


def dodges(what: str, finding: str = "") -> Accommodation:
    """Inputs stay away from what Paddle does there, a finding, or from what only a device's kernels know."""
    return Accommodation("dodges", what, finding)
