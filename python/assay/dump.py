"""Dumps of a case to disk: inputs and results, for inspection by hand.

The folder of the dump has a folder for each value regime, such as `usual` and `nan`. For each lane and run of
the case, it has `tensors/LABEL_input.npz`, `…_output.npz` and `…_grad.npz` for numpy.load(), and `LABEL.yaml`
(the JSON subset of YAML) with the case, its environment and a description of each array. Arrays of dtypes
that NumPy lacks (bfloat16, float8) hold their bits as integers.
"""

import ctypes
import json
import os
import platform
import sys
import time
import zipfile
from typing import Any

from assay.frameworks import Framework
from assay.wire import Job

VERSION = 1
# By dtype: NumPy's code, and bytes per element.
CODES = {
    "bool": ("|b1", 1), "int8": ("|i1", 1), "int16": ("<i2", 2), "int32": ("<i4", 4), "int64": ("<i8", 8),
    "uint8": ("|u1", 1), "uint16": ("<u2", 2), "uint32": ("<u4", 4), "uint64": ("<u8", 8),
    "float16": ("<f2", 2), "float32": ("<f4", 4), "float64": ("<f8", 8),
    "complex64": ("<c8", 8), "complex128": ("<c16", 16),
    "bfloat16": ("<u2", 2), "float8_e4m3fn": ("|u1", 1), "float8_e5m2": ("|u1", 1),
}  # fmt: skip
# Prefixes of environment variables that change how a framework computes.
PREFIXES = ("FLAGS_", "CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_TF32", "OMP_", "MKL_", "PADDLE_", "TORCH_")
SECRET = ("KEY", "SECRET", "TOKEN", "PASSWORD")


class Dump:
    """One run of a case in a lane under one value regime."""

    def __init__(self, framework: Framework, job: Job, run: int) -> None:
        self.framework = framework
        self.folder = os.path.join(job.lane.dump_dir, job.values)
        self.label = f"{job.lane.label}_{run}" if run > 1 else job.lane.label
        self.facts: dict[str, Any] = {
            "schema_version": VERSION,
            "created_at": time.strftime("%Y-%m-%d %H:%M:%S"),
            "api": job.api,
            "arguments": repr((job.args, job.kwargs)),
            "values": job.values,
            "lane": {key: value for key, value in job.lane.items() if key != "address"},
            "settings": dict(job.settings),
            "framework": f"{framework.name} {framework.version}",
            "python": sys.version,
            "platform": platform.platform(),
            "environment": {
                name: "(hidden)" if any(word in name for word in SECRET) else value
                for name, value in sorted(os.environ.items())
                if name.startswith(PREFIXES)
            },
            "tensors": [],
        }
        os.makedirs(os.path.join(self.folder, "tensors"), exist_ok=True)

    def save(self, what: str, leaves: list[tuple[str, Any]]) -> None:
        """Writes tensors ("input", "output", "grad") by path; other values go to the description."""
        file = os.path.join("tensors", f"{self.label}_{what}.npz")
        with zipfile.ZipFile(os.path.join(self.folder, file), "w", zipfile.ZIP_DEFLATED) as archive:
            for position, (path, value) in enumerate(leaves):
                key = f"{position}{path}".replace("/", "_")
                fact = {"file": file, "key": key, "path": path, "of": what}
                if isinstance(value, self.framework.tensor_type):
                    fact |= self._write(archive, key, value)
                else:
                    fact["value"] = repr(value)[:1000]
                self.facts["tensors"].append(fact)

    def finish(self, phase: str, error: str) -> None:
        """Writes the description. `error` is empty if the case succeeded."""
        self.facts["status"] = {"phase": phase, "error": error} if error else "done"
        with open(os.path.join(self.folder, f"{self.label}.yaml"), "w") as file:
            json.dump(self.facts, file, indent=2, default=str)

    def _write(self, archive: zipfile.ZipFile, key: str, tensor: Any) -> dict[str, Any]:
        # Elements are read from host memory.
        dense = self.framework.dense(tensor.cpu() if hasattr(tensor, "cpu") else tensor)
        code, size = CODES[dense.dtype]
        shape = tuple(int(extent) for extent in dense.shape)
        with archive.open(f"{key}.npy", "w", force_zip64=True) as file:
            file.write(npy_header(code, shape))
            file.write(ctypes.string_at(dense.pointer, dense.count * size) if dense.count else b"")
        return {"dtype": dense.dtype, "shape": list(shape)}


def npy_header(code: str, shape: tuple[int, ...]) -> bytes:
    """The header of NumPy's format 1.0 for contiguous elements."""
    text = repr({"descr": code, "fortran_order": False, "shape": shape})
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
