"""Known deviations of the API tables: references that follow Paddle, and inputs that avoid a known bug.

A deviation is declared beside its API (`known_deviation=`). `assay.known_deviation_page` lists all of them.
"""

from typing import NamedTuple


class KnownDeviation(NamedTuple):
    """One known deviation. A `pass` of such an API does not show that Paddle is right in this respect."""

    kind: str  # "follows": the reference does what Paddle does; "avoids": the inputs avoid a bug
    what: str
    # A file of docs/findings, without ".toml", if the deviation is a bug or contradicts the documentation.
    finding: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def follows(what: str, finding: str = "") -> KnownDeviation:
    """The reference follows Paddle where its documentation is silent or, for a finding, says otherwise."""
    return KnownDeviation("follows", what, finding)


def avoids(what: str, finding: str = "") -> KnownDeviation:
    """The inputs avoid a known bug of Paddle or behaviour that depends on the device's kernels."""
    return KnownDeviation("avoids", what, finding)
