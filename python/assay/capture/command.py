"""`assay capture`: runs a program under capture and merges what its processes wrote."""

import argparse
import json
import os
import signal
import subprocess
import sys
from typing import Any

from assay.capture import blame, corpus

NOTHING = 4  # src/cli/exit_code.h
USAGE = 2
KILLED = 128  # as in shells


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Its exit code is that of the program."""
    parser = argparse.ArgumentParser(prog="assay capture")
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", default="")
    parser.add_argument("--ranks", default="")
    parser.add_argument("--level", default="api")
    parser.add_argument("--values", default="")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--assay", default="assay")
    parser.add_argument("--pass-on", action="append", default=[])
    parser.add_argument("program", nargs="*")
    options = parser.parse_args(arguments)
    out = os.path.abspath(options.out)
    if not options.program:
        return _merge_only(out)
    if not os.path.isdir(os.path.dirname(out)) or os.path.isdir(out):
        print(f"error: --out {options.out}: no file can be made there", file=sys.stderr)
        return USAGE
    for file in [out, *corpus.parts_of(out)]:
        if os.path.exists(file):
            os.unlink(file)
    try:
        steps, ranks = _numbers(options.steps), _numbers(options.ranks)
    except ValueError:
        print("error: --steps and --ranks take whole numbers, separated by commas: 10,20", file=sys.stderr)
        return USAGE
    chosen: dict[str, Any] = {
        "out": out,
        "command": options.program,
        "steps": steps,
        "ranks": ranks,
        "level": options.level,
        "values": options.values,
    }
    code = _run(options.program, chosen)
    if code is None:
        print(f"error: {options.program[0]}: no such command", file=sys.stderr)
        return USAGE
    head, cases = corpus.merge(out)
    corpus.say(_summary(head, cases, options.out))
    if options.judge and cases:
        command = ["--assay", options.assay, "--corpus", options.out, *options.pass_on]
        return blame.main(command) or code
    return code or (0 if cases else NOTHING)


def _numbers(text: str) -> list[int] | None:
    return [int(each) for each in text.split(",")] if text else None


def _merge_only(out: str) -> int:
    if not corpus.parts_of(out):
        print(
            "error: give the program after --: assay capture --out corpus.txt -- python train.py",
            file=sys.stderr,
        )
        return USAGE
    head, cases = corpus.merge(out)
    corpus.say(_summary(head, cases, out))
    return 0


def _run(program: list[str], chosen: dict[str, Any]) -> int | None:
    """The exit code of the program; None if there is none of this name."""
    hook = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
    inherited = os.environ.get("ASSAY_PROGRAM_PYTHONPATH")
    path = os.pathsep.join([hook, inherited] if inherited else [hook])
    environment = {name: value for name, value in os.environ.items() if name != "ASSAY_PROGRAM_PYTHONPATH"}
    environment |= {"PYTHONPATH": path, "ASSAY_CAPTURE": json.dumps(chosen)}
    try:
        process = subprocess.Popen(program, env=environment)
    except (FileNotFoundError, PermissionError):
        return None
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in handled:  # the terminal sends them to the program, too
        signal.signal(number, lambda number, _: number != signal.SIGINT and process.send_signal(number))
    code = process.wait()
    return code if code >= 0 else KILLED - code


def _summary(head: dict[str, Any], cases: int, out: str) -> str:
    if not cases and not head["left_out"]:
        return "no call of PyTorch or Paddle was seen; Python's options -I, -E and -S keep the capture out"
    missed = sum(head["dispatched"]["missed"].values())
    whole = head["dispatched"]["seen"] + missed
    left_out = sum(head["left_out"].values())
    lines = [f"{cases} distinct calls of {head['processes']} processes, {head['steps']} steps: {out}"]
    if missed:
        most = max(head["dispatched"]["missed"], key=head["dispatched"]["missed"].get)
        lines.append(f"  {missed} of {whole} operators of a step ran outside of these calls, such as {most}")
    if left_out:
        lines.append(f"  {left_out} calls are no cases:")
        most = sorted(head["left_out"].items(), key=lambda each: -each[1])[:10]
        lines += [f"  {number:8}  {reason}" for reason, number in most]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
