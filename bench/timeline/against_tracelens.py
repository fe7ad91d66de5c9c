"""FLOPs and kernel times of `assay timeline analyze` beside TraceLens's own reference CSVs.

    against_tracelens.py ASSAY TRACE FOLDER

TRACE is a trace of TraceLens's repository (tests/traces/h100/Qwen_…json.gz), FOLDER its reference
(tests/traces/compare_test_e2e/reference/h100_perf_report_csvs). Prints one line for each matrix
product and attention: FLOP of a call, time of all kernels and TFLOP/s, both values, and how far
they are apart.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

Key = tuple[str, int, int]


def of_tracelens(folder: Path) -> dict[Key, tuple[float, float]]:
    """FLOP of a call and microseconds of all kernels, by operator, calls and FLOP without the bias."""
    found = {}
    for table in ("GEMM", "SDPA_fwd"):
        with (folder / f"{table}.csv").open() as file:
            for row in csv.DictReader(file):
                flop = round(float(row["GFLOPS_first"]) * 1e9)
                # TraceLens counts the addition of a bias as operations.
                bias = int(row["param: M"]) * int(row["param: N"]) if row.get("param: bias") == "True" else 0
                key = row["name"], int(row["name_count"]), flop - bias
                found.setdefault(key, []).append((flop, float(row["Kernel Time (µs)_sum"])))
    return {key: (rows[0][0], sum(row[1] for row in rows)) for key, rows in found.items() if len(rows) == 1}


def main() -> None:
    assay, trace, folder = sys.argv[1:]
    command = [assay, "timeline", "analyze", trace, "--format", "json"]
    analysis = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    ours = {
        (one["name"], one["calls"], round(one["flop_per_call"])): one
        for one in analysis["flops"]["operators"]
    }
    theirs = of_tracelens(Path(folder))
    apart = 0.0
    for key, (flop, microseconds) in theirs.items():
        if (one := ours.get(key)) is None:
            print(f"{key[0]} × {key[1]}: {flop:,} FLOP a call by TraceLens, none by assay")
            continue
        off = one["total_ns"] / 1e3 / microseconds - 1
        apart = max(apart, abs(off))
        print(
            f"{key[0]} × {key[1]}: FLOP a call {flop:,} and {key[2]:,}; kernels {microseconds:,.1f} µs and"
            f" {one['total_ns'] / 1e3:,.1f} µs ({100 * off:+.2f}%); {one['tflops']:.1f} TFLOP/s"
        )
    both = len(theirs.keys() & ours.keys())
    print(f"{both} of {len(theirs)} operators; times at most {100 * apart:.2f}% apart")


if __name__ == "__main__":
    main()
