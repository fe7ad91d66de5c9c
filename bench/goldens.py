#!/usr/bin/env python3
"""What goldens cost and whether they lead to the verdicts of a direct comparison.

    goldens.py FOLDER CASES --flags="…" --recorded="…" --tested="…" --steps=record,direct

Draws --cases lines by --seed from the file CASES. The steps:
    record, digest   record goldens, and goldens with --digest, into FOLDER/record and FOLDER/digest
    direct           compares both lanes without goldens
    compare, sketch  compare the test lane with FOLDER/record and FOLDER/digest
All steps get --flags. --recorded chooses the reference lane of `record`, `digest` and `direct`; --tested
chooses the test lane of `direct`, `compare` and `sketch`. FOLDER may be carried to another machine between
two steps. Prints seconds, bytes, outcomes, and the verdicts that differ from those of `direct`.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import random
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time


def outcomes(folder: pathlib.Path) -> dict[str, str]:
    query = "SELECT planned.text, outcome FROM finished JOIN planned ON planned.id = finished.id"
    return dict(sqlite3.connect(folder / "run.db").execute(query))


def differences(direct: dict[str, str], other: dict[str, str]) -> str:
    """Counts the equal verdicts, and those that differ by kind with an example of each."""
    apart = [
        (verdict, other.get(text), text) for text, verdict in direct.items() if other.get(text) != verdict
    ]
    text = f"{len(direct) - len(apart):,} of {len(direct):,} verdicts are those of the direct comparison"
    for (before, now), count in collections.Counter(one[:2] for one in apart).most_common():
        example = next(one[2] for one in apart if one[:2] == (before, now))
        text += f"\n    {count:,} {before} -> {now}, as {example[:150]}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("source", type=pathlib.Path, metavar="CASES")
    parser.add_argument("--assay", default=shutil.which("assay") or "build/release/bin/assay")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", default="record,direct,compare")
    for name in ("flags", "recorded", "tested"):
        parser.add_argument(f"--{name}", type=shlex.split, default=[])
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line for line in options.source.read_text().splitlines() if line.strip()]
    drawn = random.Random(options.seed).sample(lines, min(options.cases, len(lines)))
    (folder / "cases.txt").write_text("\n".join(drawn) + "\n")
    print(f"{len(drawn):,} of {len(lines):,} cases, seed {options.seed}", flush=True)
    golden = "--reference-lane=gold:"
    flags = {
        "record": ["record", *options.recorded],
        "digest": ["record", "--digest", *options.recorded],
        "direct": ["api", "--accuracy=True", *options.recorded, *options.tested],
        "compare": ["api", "--accuracy=True", *options.tested, f"{golden}{folder / 'record'}"],
        "sketch": ["api", "--accuracy=True", *options.tested, f"{golden}{folder / 'digest'}"],
    }
    for step in options.steps.split(","):
        own = [f"--api_config_file={folder / 'cases.txt'}", f"--log_dir={folder / step}", "--quiet"]
        began = time.monotonic()
        code = subprocess.run([options.assay, *flags[step], *options.flags, *own], check=False).returncode
        text = f"{step}: exit {code}, {time.monotonic() - began:.1f} s"
        if code not in (0, 1):
            sys.exit(text)
        if step in ("record", "digest"):
            size = sum(path.stat().st_size for path in (folder / step).glob("*.shard"))
            text += f", {size:,} bytes, {size / len(drawn):,.0f} a case"
        else:
            found = outcomes(folder / step)
            text += ", " + ", ".join(
                f"{n:,} {one}" for one, n in collections.Counter(found.values()).most_common()
            )
            if step != "direct" and (folder / "direct").exists():
                text += "\n    " + differences(outcomes(folder / "direct"), found)
        print(text, flush=True)


if __name__ == "__main__":
    main()
