"""Each act of ../shared/robust/misb.py: a function of Paddle that does to its lane what no function should.

Two cases call it among 24 others. They alone get blame, the others pass, and nothing is left.
"""

import ast
import os
import pathlib
import shutil
import subprocess
import time

import pytest
from tree import ASSAY, ROOT

pytestmark = pytest.mark.slow
SHARED = ROOT.parent / "shared" / "robust"
# What the two cases may end as; "pass" where no act is named.
ENDINGS = {
    "crash": "close_all close_all_0 dl_ctor exit0 exit77 junk_channel trunc_arena kill_group kill_slot "
    "monkey_native fpe exec_other exec_sleep sock_swap sock_null builtins_gone",
    "timeout": "spin_gil pyspin stop_self exec_sleep",
    "test_error": "dl_crash sysexit kbd genexit weird badstr hugemsg surrogate audit static_on",
    "mismatch": "nograd",
}
# Luck decides what a damaged process does before it ends.
UNSURE = {
    "junk_arena": {"pass", "crash"},
    "junk_arena0": {"pass", "crash"},
    "fork_return": {"pass", "crash"},
    "heap": {"pass", "crash"},
    "abort_stack": {"crash", "test_error", "timeout", "oom"},
    "ftz": {"pass", "mismatch"},
    "fe_up": {"pass", "mismatch"},
    "kill_parent": {"pass", "crash"},
    "exhaust": {"timeout", "crash", "oom", "test_error"},
}
LIBRARIES = {
    "ctor": "#include <stdlib.h>\n__attribute__((constructor)) static void c(void) { abort(); }",
    "spin": 'void spin(void) { for (;;) __asm__(""); }',
    "ftz": "#include <xmmintrin.h>\nvoid ftz(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }",
}


def acts():
    """The names that misb.py lists, without importing it: that needs the frameworks."""
    file = SHARED / "misb.py"
    if not file.exists():
        return []
    tree = ast.parse(file.read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in names if name not in ("before", "create")]


@pytest.fixture(scope="session", autouse=True)
def libraries():
    """The libraries that some acts load from /tmp."""
    if not SHARED.exists():
        pytest.skip(f"the acts are not there: {SHARED}")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    made = [pathlib.Path(f"/tmp/misb_{name}.so") for name in LIBRARIES]
    for file, text in zip(made, LIBRARIES.values(), strict=True):
        command = ["cc", "-shared", "-fPIC", "-xc", "-", "-o", file]
        subprocess.run(command, input=text, text=True, check=True)
    yield
    for file in (*made, pathlib.Path("/tmp/misb_not.so")):
        file.unlink(missing_ok=True)


def processes_of(word):
    """The commands of processes whose environment or command line has this word."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes()
            if entry.name.isdigit() and word.encode() in line + (entry / "environ").read_bytes():
                found.append(line.replace(b"\0", b" ").decode(errors="replace")[:200])
        except OSError:
            continue
    return found


@pytest.mark.parametrize("act", acts() or ["none"])
def test_the_right_one_is_blamed_and_nothing_is_left(act, tmp_path):
    settings = f"""version = 1
[frameworks.paddle]
python = "{ROOT}/.venv/paddle/bin/python"
environment = ["ASSAY_FRAMEWORK_MODULE=misb", "PYTHONPATH={SHARED}", "MISB={act}", "OF={tmp_path}"]
[frameworks.torch]
python = "{ROOT}/.venv/torch/bin/python"
environment = ["OF={tmp_path}"]
"""
    (tmp_path / "assay.toml").write_text(settings)
    others = [f'paddle.{name}(Tensor([{i}, 5], "float32"))' for name in ("abs", "sin") for i in range(1, 13)]
    acting = [f'paddle.cos(Tensor([{i}, 7], "float32"))' for i in (3, 9)]
    (tmp_path / "cases.txt").write_text("\n".join([*others[:12], *acting, *others[12:]]) + "\n")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [ASSAY, "api", "--api_config_file=cases.txt", "--log_dir=run", "--num_gpus=0"]
    command += ["--num_workers_per_gpu=1", "--values=usual", "--timeout=8"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    if act == "term_super":
        assert done.returncode == 130, done.stdout + done.stderr
    else:
        found = {}
        for outcome in ("pass", "mismatch", "crash", "timeout", "oom", "test_error", "reference_error"):
            listed = subprocess.check_output(
                [ASSAY, "report", "run", "--list", outcome], cwd=tmp_path, text=True
            )
            found |= dict.fromkeys(listed.splitlines(), outcome)
        expected = UNSURE.get(act) or {name for name, of in ENDINGS.items() if act in of.split()} or {"pass"}
        assert {case: found.get(case) for case in others} == dict.fromkeys(others, "pass"), done.stderr
        assert {found.get(case) for case in acting} <= expected, done.stdout + done.stderr
        assert done.returncode == (0 if {found.get(case) for case in acting} == {"pass"} else 1)
    until = time.monotonic() + 10
    while (left := processes_of(str(tmp_path))) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []
    assert list(temporary.iterdir()) == []
