#!/usr/bin/env python3
"""The table of lab/mutation.md: all faults, planted in small cases of every API that the corpora have.

    python3 bench/mutation/table.py [--full] [--sample 1/2] [--markdown lab/mutation.md] CORPUS…

Of each API one case, drawn by the seed; with --full three. A corpus may be packed (.xz). The table is printed
and, with --markdown, put between the marks of that file; then how long it took, and on which machine.
"""

import argparse
import datetime
import lzma
import os
import pathlib
import platform
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSAY = ROOT / "build" / "release" / "bin" / "assay"
CASES, CASES_OF_FULL = 1, 3


def unpacked(corpus: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    if corpus.suffix != ".xz":
        return corpus
    text = folder / corpus.stem
    text.write_bytes(lzma.decompress(corpus.read_bytes()))
    return text


def command(options: argparse.Namespace, folder: pathlib.Path) -> list[str]:
    corpora = [unpacked(corpus, folder) for corpus in options.corpora]
    cases = CASES_OF_FULL if options.full else CASES
    flags = [
        f"--api_config_file={','.join(map(str, corpora))}",
        f"--cases={cases}",
        f"--sample={options.sample}",
        f"--seed={options.seed}",
        f"--operators={options.operators}",
        f"--log_dir={folder / 'run'}",
        f"--num_workers={options.workers}",
    ]
    if options.markdown:
        flags.append(f"--markdown={options.markdown}")
    return [str(ASSAY), "mutate", *flags]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=pathlib.Path)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sample", default="1/1", help="the share of mutants that are made")
    parser.add_argument("--operators", default="all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=pathlib.Path, help="of the run (default: build/mutation-DATE)")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    name = f"mutation-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    folder = (options.folder or ROOT / "build" / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    status = subprocess.run(command(options, folder), check=False).returncode
    seconds = time.monotonic() - began
    machine = f"{os.cpu_count()} cores ({platform.machine()})"
    print(f"\n{seconds:.0f} s on {machine}; the run is in {folder / 'run'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
