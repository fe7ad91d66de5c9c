"""`assay capture`: runs a program under capture and merges what its processes wrote."""

import argparse
import json
import os
import signal
import subprocess
import sys
from typing import Any

from assay.capture import blame, corpus

NOTHING = 4  # src/cli/verb.h
USAGE = 2
KILLED = 128  # as in shells


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Its exit code is that of the program."""
    parser = argparse.ArgumentParser(prog="assay capture")
    parser.add_argument("--out", default="corpus.txt")
    parser.add_argument("--steps", default="")
    parser.add_argument("--ranks", default="")
    parser.add_argument("--level", default="api")
    parser.add_argument("--deep", default="")
    parser.add_argument("--summaries", action="store_true")
    parser.add_argument("--judge", action="store_true")
    words = sys.argv[1:] if arguments is None else arguments
    end = words.index("--")
    options, for_blame = parser.parse_known_args(words[:end])
    program = words[end + 1 :]
    out = os.path.abspath(options.out)
    if not program and not corpus.parts_of(out):
        return _usage("give the program after --: assay capture --out corpus.txt -- python train.py")
    code: int | None = 0
    if program:
        if not os.path.isdir(os.path.dirname(out)) or os.path.isdir(out):
            return _usage(f"--out {options.out}: no file can be made there")
        try:
            steps, ranks = _numbers(options.steps), _numbers(options.ranks)
        except ValueError:
            return _usage("--steps and --ranks take whole numbers, separated by commas: 10,20")
        for file in filter(os.path.exists, [out, *corpus.parts_of(out)]):
            os.unlink(file)
        chosen = {
            "deep": options.deep and os.path.abspath(options.deep),
            "out": out,
            "command": program,
            "steps": steps,
            "ranks": ranks,
        }
        code = _run(
            program, chosen | {"level": options.level, "summaries": options.summaries or options.judge}
        )
        if code is None:
            return _usage(f"{program[0]}: no such command")
    head, cases = corpus.merge(out)
    print(f"assay capture: {_summary(head, cases, options.out)}", file=sys.stderr)
    if options.judge and cases:
        return blame.main([*for_blame, "--", options.out]) or code
    return code or (0 if cases else NOTHING)


def _usage(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return USAGE


def _numbers(text: str) -> list[int] | None:
    return [int(each) for each in text.split(",")] if text else None


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
    if whole:
        most = max(head["dispatched"]["missed"], key=head["dispatched"]["missed"].get, default="")
        shown = f"  {missed} of {whole} operators of a step ran outside of these calls"
        lines.append(shown + (f", such as {most}" if most else ""))
    if left_out:
        lines.append(f"  {left_out} calls are no cases:")
        most = sorted(head["left_out"].items(), key=lambda each: -each[1])[:10]
        lines += [f"  {number:8}  {reason}" for reason, number in most]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
