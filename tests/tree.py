"""Where the tests find this checkout and the program that was built in it."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
ASSAY = ROOT / "build" / "release" / "bin" / "assay"
