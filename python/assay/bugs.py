"""Errors of assay itself, in the lane's log."""

import sys
import traceback
from pathlib import Path

PACKAGE = str(Path(__file__).parent) + "/"
KINDS = (TypeError, AttributeError, NameError)


def note_bug(api: str, error: BaseException) -> None:
    """Prints the error if assay's own code raised it, rather than a framework or a refusal. Where it
    leaves a case without its truth, the case is judged by tolerance, so that nothing else shows the bug."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, KINDS) and frames and frames[-1].filename.startswith(PACKAGE):
        where = f"{frames[-1].filename.removeprefix(PACKAGE)}:{frames[-1].lineno}"
        print(f"assay: BUG: {api}: {type(error).__name__}: {error} ({where})", file=sys.stderr, flush=True)
