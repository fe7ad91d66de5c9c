"""The tables against Paddle itself: every name is there, with the parameters that the reference has."""

import json
import re
import subprocess

import pytest
from assay.operators import ROOT

# Asks Paddle, in its own environment: for each name its parameters as [name, is keyword only], True
# where they cannot be told (methods written in C, *args), False where there is no such name.
ASK = """
import inspect, json, sys
import paddle
from assay.frameworks import look_up

def parameters(name):
    try:
        found = look_up(paddle, name)
    except Exception:
        return False
    try:
        all = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return True
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in all):
        return True
    return [[each.name, each.kind == each.KEYWORD_ONLY] for each in all]

print(json.dumps({name: parameters(name) for name in json.load(sys.stdin)}))
"""

# They name and hand over the result; a reference may do without.
NO_MATTER = {"name", "out"}


@pytest.fixture(scope="session")
def paddle(apis, root):
    """What Paddle says of every registered name."""
    python = root / ".venv" / "paddle" / "bin" / "python"
    if not python.exists():
        pytest.skip("no environment with Paddle: make setup")
    done = subprocess.run(
        [python, "-c", ASK],
        input=json.dumps(list(apis)),
        env={"PYTHONPATH": str(root / "python"), "GLOG_minloglevel": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_name_is_one_of_paddle(paddle):
    assert [name for name, found in paddle.items() if found is False] == []


def test_parameters_are_those_of_paddle(apis, paddle):
    """Its positional ones in its order, its keyword-only ones somewhere. Ours may have more at the end, where
    one function serves several names; the subject of a method may have any name; and Python hands operators
    their arguments by position."""
    wrong = {}
    told = {
        name: found
        for name, found in paddle.items()
        if not isinstance(found, bool) and not name.endswith("__")
    }
    for name, found in told.items():
        method = name.startswith("paddle.Tensor.")
        ours = [each for each in apis[name].parameters[method:] if each not in NO_MATTER]
        theirs = [each for each in found[method:] if each[0] not in NO_MATTER]
        positional = [each for each, keyword_only in theirs if not keyword_only]
        if ours[: len(positional)] != positional or not {each for each, _ in theirs} <= set(ours):
            wrong[name] = (found, apis[name].parameters)
    assert wrong == {}
    operators = [name for name in paddle if name.startswith(ROOT)]  # written in C
    assert len(told) > 0.85 * (len(paddle) - len(operators))


def test_operators_take_the_arguments_of_paddles_headers(apis, paddle, root):
    """Python's functions of operators name no parameters, but the C++ functions of the same names do."""
    packages = next((root / ".venv" / "paddle" / "lib").glob("python*/site-packages"))
    text = "".join(
        (packages / "paddle/include/paddle/phi/api/include" / name).read_text()
        for name in ("api.h", "fused_api.h")
    )
    declared = {}
    for name, arguments in re.findall(r"PADDLE_API .+? (\w+)\((.*)\);", text):
        parts = re.split(r",(?![^<({]*[>)}])", re.sub(r"<[^<>]*<[^<>]*<[^<>]*>[^<>]*>[^<>]*>", "", arguments))
        names = [re.split(r"[\s&*]+", part.partition(" = ")[0].strip())[-1] for part in parts]
        declared.setdefault(name, [each for each in names if each != "predefined_out"])
    ours = {name.removeprefix(ROOT): apis[name].parameters for name in apis if name.startswith(ROOT)}
    known = {name: found for name, found in ours.items() if name in declared}
    wrong = {name: declared[name] for name, found in known.items() if list(found) != declared[name]}
    assert wrong == {}
    assert len(known) > 0.95 * len(ours)
