"""Data-parallel steps with a planted fault, to see whether the timeline names it. Run by torchrun.

    faults.py --fault none|slow|late|stop [--rank 1] [--steps 40] [--profile FOLDER] [--bandwidth]

slow: the rank's GPU has a tenth more to compute; late: its host waits before it launches a step; stop:
it does not come to the collective of step 20. With --profile each rank's PyTorch profile goes into the
folder. With --bandwidth rank 0 prints, for each size, what CUDA events and nccl-tests' formula give.
"""

import argparse
import json
import os
import sys
import time
from functools import partial

sys.path.insert(0, os.environ.get("ASSAY_PYTHON", os.path.join(os.path.dirname(__file__), "../../../python")))
import torch
import torch.distributed as dist
from assay.timeline import job, step

STOP_AT = 20


def compute(matrix, times):
    result = matrix
    for _ in range(times):
        result = (result @ matrix).clamp_(-1, 1)
    return result


def run(options, mine, matrix, gradient):
    for number in range(options.steps):
        step(number)
        with torch.profiler.record_function(f"ProfilerStep#{number}"):
            if mine and options.fault == "late":
                time.sleep(0.01)
            with job("forward", micro_batch=0):
                compute(matrix, 22 if mine and options.fault == "slow" else 20)
            if mine and options.fault == "stop" and number == STOP_AT:
                time.sleep(3600)
            dist.all_reduce(gradient)
            torch.cuda.synchronize()


def bandwidth():
    world = dist.get_world_size()
    for megabytes in (16, 64, 256):
        data = torch.ones(megabytes << 18, device="cuda")
        gathered = torch.empty(world * data.numel(), device="cuda")
        calls = {
            "allreduce": (partial(dist.all_reduce, data), data.nbytes, 2 * (world - 1) / world),
            "allgather": (
                partial(dist.all_gather_into_tensor, gathered, data),
                gathered.nbytes,
                (world - 1) / world,
            ),
            "reducescatter": (
                partial(dist.reduce_scatter_tensor, data, gathered),
                gathered.nbytes,
                (world - 1) / world,
            ),
        }
        for name, (call, size, factor) in calls.items():
            times = []
            for _ in range(20):
                dist.barrier()
                torch.cuda.synchronize()
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                call()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) / 1e3)
            seconds = sorted(times)[len(times) // 2]
            if dist.get_rank() == 0:
                print(json.dumps({"name": name, "bytes": size, "bus_gbps": size / seconds / 1e9 * factor}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=["none", "slow", "late", "stop"], default="none")
    parser.add_argument("--rank", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--profile")
    parser.add_argument("--bandwidth", action="store_true")
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    gradient = torch.randn(64 << 20, device="cuda", dtype=torch.bfloat16)
    dist.all_reduce(gradient)
    compute(matrix, 20)
    torch.cuda.synchronize()
    profiler = torch.profiler.profile() if options.profile else None
    if profiler:
        profiler.start()
    if options.bandwidth:
        bandwidth()
    else:
        run(options, rank == options.rank, matrix, gradient)
    if profiler:
        profiler.stop()
        os.makedirs(options.profile, exist_ok=True)
        profiler.export_chrome_trace(os.path.join(options.profile, f"rank{rank}.json"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
