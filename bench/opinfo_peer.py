#!/usr/bin/env python3
"""How fast TorchCTS tests samples of PyTorch's OpInfo database on the CPU, in one process.

    opinfo_peer.py                       prints the ops, for `assay corpus opinfo --ops`
    opinfo_peer.py --torchcts=FOLDER     runs TorchCTS's forward and backward suites (needs pytest and psutil)

Takes every --step-th op by name whose name --ops finds, in six dtypes. TorchCTS runs all samples, and three
with NaN and three with infinity. Its device is cpu:0, because it compares nothing if the device is cpu.
"""

import argparse
import collections
import datetime
import os
import pathlib
import platform
import re
import sys
import tempfile
import time
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int64]
counts: collections.Counter[str] = collections.Counter()


def torchcts(source: str, others: list[str]) -> None:
    import pytest

    sys.path.insert(0, source)
    from torchcts.core import opinfo_adapter as adapter

    samples, prepare = adapter.get_op_sample_inputs, adapter.prepare_sample

    def counted(name: str, device: str, dtype: Any, requires_grad: bool = False) -> Any:
        for sample in samples(name, device, dtype, requires_grad=requires_grad):
            counts["backward samples"] += requires_grad
            yield sample

    def prepared(sample: Any, condition: str, **options: Any) -> Any:
        counts[f"forward samples, {condition}"] += 1
        return prepare(sample, condition, **options)

    class Nodes:
        def pytest_runtest_logreport(self, report: Any) -> None:
            counts["ms in tests"] += round(1000 * report.duration) if report.when == "call" else 0

    adapter.get_op_sample_inputs, adapter.prepare_sample = counted, prepared
    with tempfile.TemporaryDirectory() as folder:
        manifest: dict[str, Any] = {"skip_ops": others, "max_samples": 0, "max_samples_ieee754": 3}
        manifest["capabilities"] = dict.fromkeys(("inference", "training", "sparse", "ieee754"), True)
        manifest["supported_dtypes"] = dict.fromkeys(map(str, DTYPES), True)
        pathlib.Path(folder, "manifest.py").write_text(f"manifest = {manifest}\n")
        os.chdir(folder)
        files = [f"{source}/torchcts/opinfo/test_opinfo_{name}.py" for name in ("forward", "backward")]
        flags = ["-q", "--tb=no", "--no-summary", "-pno:cacheprovider", "--device=cpu:0", "--level=8"]
        pytest.main([*files, *flags, f"--results-dir={folder}/results"], plugins=[Nodes()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--torchcts", metavar="FOLDER", type=os.path.abspath)
    parser.add_argument("--step", type=int, default=8)
    parser.add_argument("--ops", default="", metavar="REGEX")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = sorted({op.name for op in op_db})
    chosen = [name for name in names[:: options.step] if re.search(options.ops, name)]
    if not options.torchcts:
        print(f"^({'|'.join(map(re.escape, chosen))})$")
        return
    began = time.monotonic()
    torchcts(options.torchcts, sorted(set(names) - set(chosen)))
    print(f"{datetime.date.today()}, {os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}")
    print(f"{len(chosen)} ops: {time.monotonic() - began:.1f} s, {dict(counts)}")


if __name__ == "__main__":
    main()
