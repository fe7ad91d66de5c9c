"""Six ways in which a kernel of others cheats a loose checker: assay finds each of them."""

import subprocess

import pytest
from tree import ASSAY, ROOT

# silu(x) as an operator of its own library, right once and wrong in six ways.
KERNELS = """
import torch

library = torch.library.Library("cheat", "DEF")
silu = torch.nn.functional.silu
cached, seen, written = {}, set(), set()

def key(x):
    return tuple(x.shape), x.dtype

def same_result(x):  # the first right result for all inputs of this shape
    return cached.setdefault(key(x), silu(x)).clone()

def when_repeated(x):  # writes only if it has had these inputs before, as a benchmark gives them
    known = key(x), float(x.double().sum())
    result = silu(x) if known in seen else torch.zeros_like(x)
    seen.add(known)
    return result

def nan(x):  # taken for equal to anything
    return torch.full_like(x, float("nan"))

def lower_precision(x):
    return silu(x.half()).to(x.dtype)

def old_memory(x):  # the memory of the result before, which the allocator hands out again
    if key(x) not in written:
        written.add(key(x))
        return silu(x)
    return torch.empty_like(x)

def last_block(x):  # whole blocks of 256 only
    result = torch.zeros_like(x)
    whole = x.numel() // 256 * 256
    result.view(-1)[:whole] = silu(x.reshape(-1)[:whole])
    return result

for name, kernel in {
    "right": silu, "same_result": same_result, "when_repeated": when_repeated, "nan": nan,
    "lower_precision": lower_precision, "old_memory": old_memory, "last_block": last_block,
}.items():
    library.define(f"{name}(Tensor x) -> Tensor")
    library.impl(name, kernel, "CPU")
"""
CHEATS = ("same_result", "when_repeated", "nan", "lower_precision", "old_memory", "last_block")
REFERENCE = f"""
from assay.reference import torch
from assay.registry import api

@api({", ".join(f'"torch.ops.cheat.{name}"' for name in ("right", *CHEATS))},
     grad=False, traits={{"without": {{}}}})
def silu(x):
    return x * torch.sigmoid(x)
"""


@pytest.mark.slow
def test_six_of_six_cheats_are_found(tmp_path):
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "cheat.py").write_text(REFERENCE)
    settings = 'version = 1\n[lanes.theirs]\nframework = "torch"\nmodules = ["kernels"]\n'
    settings += f'environment = ["PYTHONPATH={tmp_path}"]\n'
    (tmp_path / "assay.toml").write_text(settings)
    shapes = "[1000]", "[33, 70]"
    cases = [
        f'torch.ops.cheat.{name}(Tensor({shape}, "float32"))'
        for name in ("right", *CHEATS)
        for shape in shapes
    ]
    (tmp_path / "cases.txt").write_text("\n".join(cases) + "\n")
    command = [ASSAY, "api", "--api_config_file=cases.txt", "--test-lane=theirs", "--reference-lane=theirs"]
    command += ["--apis=own", "--log_dir=run", "--accuracy=True"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr

    def listed(outcome):
        text = subprocess.check_output([ASSAY, "report", tmp_path / "run", "--list", outcome], text=True)
        return sorted(text.splitlines())

    assert listed("pass") == sorted(case for case in cases if ".right(" in case)
    assert listed("mismatch") == sorted(case for case in cases if ".right(" not in case)
