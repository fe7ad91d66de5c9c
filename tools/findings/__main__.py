"""python3 tools/findings index | run [NAME...] | lists FOLDER

index writes docs/findings/README.md; run runs the scripts and says which bugs show; lists writes the lists of
known faults.
"""

import pathlib
import sys

import known_faults
import model
import pages
import runner


def main(arguments: list[str]) -> int:
    findings = model.load()
    if arguments[:1] == ["index"]:
        (model.FOLDER / "README.md").write_text(pages.index(findings))
        return 0
    if arguments[:1] == ["run"]:
        chosen = [each for each in findings if each.runs_here and each.name in (arguments[1:] or [each.name])]
        for name, result in sorted(runner.run(chosen).items()):
            print(f"{result.verdict}  {name}")
        return 0
    if arguments[:1] == ["lists"] and len(arguments) == 2:
        known_faults.write(findings, pathlib.Path(arguments[1]))
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
