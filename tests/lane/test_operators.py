"""Operators of paddle._C_ops: how they follow public functions, which calls are refused, own references."""

import os
import subprocess
import sys

import pytest
from assay.names import public_name
from assay.operators import CUSTOM, ROOT, check_arguments, custom_name, spelled
from assay.wire import Job, Stop


def job(api, *args):
    return Job(api, args, {}, 0, 0, None, None, None, 7, "usual", 0, "")


def test_an_operator_takes_rules_and_reference_of_its_function(apis):
    found, public = apis[f"{ROOT}index_add_"], apis["paddle.index_add"]
    assert found.parameters == ("x", "index", "add_value", "axis")
    assert found.changes == "x" and found.family == public.family
    assert found.rules["index"] is public.rules["index"]
    assert found.aliases["value"] == "add_value"


@pytest.mark.parametrize("names", ["where_ x", "put_along_axis_ arr", "add_ x", "adamw_ param"])
def test_an_operator_in_place_changes_what_its_function_changes(apis, names):
    name, changed = names.split()
    assert apis[ROOT + name].changes == changed


def test_the_state_of_an_optimizer_is_compared(apis):
    assert set(apis[f"{ROOT}adamw_"].updates) == {
        "moment1", "moment2", "moment2_max", "beta1_pow", "beta2_pow", "master_param"
    }  # fmt: skip
    assert "skip_update" not in apis[f"{ROOT}merged_adam_"].parameters


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_call_with_other_arguments_is_refused(apis, count):
    """Paddle reads beyond too few arguments and crashes."""
    with pytest.raises(Stop, match="takes 2 arguments: x, perm"):
        check_arguments(apis[f"{ROOT}transpose"], [None] * count, {})


def test_a_whole_call_is_taken(apis):
    entry = apis[f"{ROOT}transpose"]
    check_arguments(entry, [None, None], {"out": None})
    check_arguments(entry, [None], {"perm": [0]})
    with pytest.raises(Stop):
        check_arguments(entry, [None, None], {"axis": 0})


def test_only_listed_operators_may_be_called():
    assert public_name(f"{ROOT}add_", known=True)
    with pytest.raises(Stop, match="do not list this operator"):
        public_name(f"{ROOT}read_file")
    with pytest.raises(Stop, match="private"):
        public_name("paddle._legacy_C_ops.add", known=True)


def test_a_custom_operator_is_an_api_of_its_own():
    found = spelled(job(CUSTOM, "fused", 1, 2))
    assert found.api == f"{CUSTOM}.fused" and found.args == (1, 2)
    assert custom_name(found.api) == "fused" and custom_name(f"{ROOT}add_") == ""
    assert spelled(job(CUSTOM)).api == CUSTOM  # refused as an unknown operator
    assert spelled(job("paddle.abs", "x")).args == ("x",)


REGISTERED = """
from assay.registry import load_all
from assay import own_tables
print(sorted(name for name in load_all() if "own_" in name), own_tables.identity())
"""


def registered(root, *folders):
    done = subprocess.run(
        [sys.executable, "-c", REGISTERED],
        env=os.environ | {"PYTHONPATH": str(root / "python"), "ASSAY_APIS": ":".join(map(str, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr.splitlines()[-1]


def test_own_files_register_references(tmp_path, root):
    text = "from assay.registry import api\n@api('paddle.own_{}')\ndef own(x):\n    return x\n"
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / f"of_{folder.name}.py").write_text(text.format(folder.name))
    first = registered(root, *folders)
    assert first.startswith("['paddle.own_a', 'paddle.own_b'] ")
    (folders[0] / "of_a.py").write_text(text.format("a") + "# changed\n")
    assert registered(root, *folders).split()[-1] != first.split()[-1]
    (folders[1] / "of_a.py").write_text(text.format("c"))
    assert "another folder has a file of this name" in registered(root, *folders)
    assert registered(root).startswith("[]")


def test_an_own_file_cannot_replace_a_reference(tmp_path, root):
    (tmp_path / "own.py").write_text(
        "from assay.registry import api\n@api('paddle.abs')\ndef own_abs(x):\n    return x\n"
    )
    assert "paddle.abs is registered twice" in registered(root, tmp_path)
