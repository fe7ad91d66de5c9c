"""Answers requests for scripts: JSON on standard input, JSON on standard output.

    {"v": 1, "requests": [{"do": "repro", …}, {"do": "issue", …}]}
        {"v": 1, "answers": [{"script": …}, {"text": …, "script": …, "why": …}]}

An answer with "error" says why there is no other.
"""

import json
import sys
from typing import Any

from assay.scripts.issue import issue
from assay.scripts.repro import repro
from assay.wire import Fields

VERSION = 1


def answer(request: Fields) -> dict[str, Any]:
    """The answer to one request. A broken one does not spoil the others."""
    try:
        if request.do == "kernel":
            from assay.scripts.kernel import kernel

            return kernel(request)
        if request.do == "scorecard":
            from assay.scripts.scorecard import scorecard

            return scorecard(request)
        return issue(request) if request.do == "issue" else {"script": repro(request)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> int:
    """Answers all requests of one message."""
    asked = json.load(sys.stdin, object_hook=Fields)
    if asked["v"] != VERSION:
        raise SystemExit("a request of another version of assay")
    json.dump({"v": VERSION, "answers": [answer(request) for request in asked["requests"]]}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
