#!/usr/bin/env python3
"""`assay kernel`, a back end and batch invariance on a GPU: what the how-tos say, measured.

    python3 bench/gpu/own_kernels.py FOLDER [--assay PROGRAM]

Prints the exit code and the seconds of each command; the folder keeps their output.
"""

import argparse
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "tests" / "real" / "kernel_cheats.py"
INPUTS = '(Tensor([64, 100], "float32"), Tensor([100], "float32"))'
TRITON = """import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, width, eps, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    row = tl.program_id(0) * width
    value = tl.load(x + row + place, mask=place < width, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / width + eps)
    tl.store(y + row + place, value * scale, mask=place < width)

def rms_norm(x, eps=1e-6):
    assert x.is_contiguous()
    y = torch.empty_like(x)
    kernel[(x.numel() // x.shape[-1],)](x, y, x.shape[-1], eps, BLOCK=triton.next_power_of_2(x.shape[-1]))
    return y

def rms_norm_reference(x, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
"""
LLM = """torch.matmul(Tensor([64, 4096], "bfloat16"), Tensor([4096, 4096], "bfloat16"))
torch.nn.functional.linear(Tensor([8, 256, 4096], "bfloat16"), Tensor([4096, 4096], "bfloat16"))
torch.nn.functional.rms_norm(Tensor([64, 4096], "bfloat16"), [4096], Tensor([4096], "bfloat16"))
torch.nn.functional.layer_norm(Tensor([64, 4096], "bfloat16"), [4096])
torch.softmax(Tensor([64, 32000], "bfloat16"), -1)
torch.nn.functional.silu(Tensor([64, 4096], "bfloat16"))
torch.nn.functional.scaled_dot_product_attention(Tensor([4, 16, 256, 64], "bfloat16"), \
Tensor([4, 16, 256, 64], "bfloat16"), Tensor([4, 16, 256, 64], "bfloat16"), is_causal=True)
"""
EVERY = "rows=bits,batches=bits,position=bits,padding=bits,chunks=bits,cache=bits"


def main() -> None:
    """Runs all commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--assay", default=str(ROOT / "build" / "release" / "bin" / "assay"))
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True)
    (folder / "triton_kernel.py").write_text(TRITON)
    (folder / "llm.txt").write_text(LLM)
    back_end = ROOT / "examples" / "triton_backend"
    shape = '--api_config=(Tensor([64, 4096], "bfloat16"), 1e-6)'
    reference = "--reference=triton_kernel.py:rms_norm_reference"
    settings = f"--settings={back_end / 'assay.toml'}"
    commands = {
        "kernel": ["kernel", "triton_kernel.py:rms_norm", reference, shape, "--speed"],
        "kernel-alone": ["kernel", "triton_kernel.py:rms_norm", shape],
        "right": ["kernel", f"{KERNELS}:right", f"--api_config={INPUTS}"],
        "zeros": ["kernel", f"{KERNELS}:zeros", f"--api_config={INPUTS}"],
        "half-the-rows": ["kernel", f"{KERNELS}:half_the_rows", f"--api_config={INPUTS}"],
        "back-end": ["api", str(back_end / "cases.txt"), settings, "--test-lane=mine"],
        "back-end-wrong": ["api", str(back_end / "cases.txt"), settings, "--test-lane=wrong"],
        "invariance": ["relations", "llm.txt", f"--require={EVERY}", "--test-lane=torch:cuda:0"],
    }
    for name, words in commands.items():
        begun = time.monotonic()
        done = subprocess.run(
            [options.assay, *words, f"--log_dir={name}"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        (folder / f"{name}.out").write_text(done.stdout + done.stderr)
        print(f"{name:<16} exit code {done.returncode}, {time.monotonic() - begun:.1f} s", flush=True)
        print("    " + "\n    ".join((done.stdout + done.stderr).splitlines()[-8:]), flush=True)


if __name__ == "__main__":
    main()
