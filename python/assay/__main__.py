"""``python -m assay`` and the command ``assay`` of a wheel: replaces this process by the C++ program.

ASSAY_PYTHON tells the program which Python started it. Lanes run in that Python by default, and so find the
frameworks of the environment that assay is installed in.
"""

import os
import pathlib
import shutil
import sys

# Paths of the program in a wheel and in a checkout, from the folder above python/.
_PLACES = ("bin/assay", "build/release/bin/assay")


def program(home: pathlib.Path) -> pathlib.Path | None:
    """The program's file below ``home``; None if it is not built."""
    return next((home / place for place in _PLACES if (home / place).is_file()), None)


def own_command(called: str) -> str:
    """The shell command that starts assay again, if it was started as ``called`` (``sys.argv[0]``)."""
    if pathlib.Path(called).name != "assay":
        return f"{sys.executable} -m assay"
    found = shutil.which("assay")
    return "assay" if found and os.path.samefile(found, called) else os.path.abspath(called)


def main() -> None:
    """Runs the program. Does not return; exits with a message if the program is missing."""
    home = pathlib.Path(__file__).resolve().parents[2]
    file = program(home)
    if file is None:
        sys.exit(f"assay: found no program in {home}; in a clone, run `make build`")
    if sys.executable:
        os.environ.setdefault("ASSAY_PYTHON", sys.executable)
        os.environ["ASSAY_COMMAND"] = own_command(sys.argv[0])
    os.execv(file, ["assay", *sys.argv[1:]])


if __name__ == "__main__":
    main()
