"""``python -m assay`` and the command ``assay`` of a wheel: become the program, which is written in C++.

The program hears which Python it was called with (``ASSAY_PYTHON``): where nothing else is said, lanes run in
that one, and so they find the frameworks of the environment that assay is installed in.
"""

import os
import pathlib
import shutil
import sys

# From the folder above python/: as a wheel has it, and as a build in a checkout has it.
_PLACES = ("bin/assay", "build/release/bin/assay")


def program(home: pathlib.Path) -> pathlib.Path | None:
    """The program's file below ``home``, or None where it is not built."""
    return next((home / place for place in _PLACES if (home / place).is_file()), None)


def own_command(called: str) -> str:
    """What a shell has to be told to get here again, when this came as ``called`` (``sys.argv[0]``)."""
    if pathlib.Path(called).name != "assay":
        return f"{sys.executable} -m assay"
    found = shutil.which("assay")
    return "assay" if found and os.path.samefile(found, called) else os.path.abspath(called)


def main() -> None:
    """Never returns."""
    home = pathlib.Path(__file__).resolve().parents[2]
    file = program(home)
    if file is None:
        sys.exit(f"assay: there is no program in {home}: in a clone, `make build` makes it")
    if sys.executable:
        os.environ.setdefault("ASSAY_PYTHON", sys.executable)
        os.environ["ASSAY_COMMAND"] = own_command(sys.argv[0])
    os.execv(file, ["assay", *sys.argv[1:]])


if __name__ == "__main__":
    main()
