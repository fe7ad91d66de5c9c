"""The share of judgeable trials that each exclusion removes, from a run's report.

    assay report RUN --json | python3 bench/measure/exclusions.py

A trial is a case under one value regime other than usual. `elsewhere` marks exclusions that lose nothing,
because another regime or a distribution judges the same.
"""

import json
import sys
from collections import Counter

ELSEWHERE = (
    "by the regime `infinity`",
    "compared with their distribution",
    "a draw is judged by its distribution",
)


def main() -> None:
    report = json.load(sys.stdin)
    removed: Counter[str] = Counter()
    for reasons in report["not_judged"].values():
        removed.update(reasons)
    trials = report["cases"] * max(1, len(report["not_judged"]))
    lost = sum(count for why, count in removed.items() if not any(word in why for word in ELSEWHERE))
    print(
        f"{trials} trials of {report['cases']} cases; {lost} excluded and judged nowhere: {lost / trials:.2%}"
    )
    for why, count in removed.most_common():
        mark = " (elsewhere)" if any(word in why for word in ELSEWHERE) else ""
        print(f"{count:6} {count / trials:7.2%}  {why}{mark}")


if __name__ == "__main__":
    main()
