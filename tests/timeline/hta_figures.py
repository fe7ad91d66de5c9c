"""What Holistic Trace Analysis says of traces: the figures that hta_test.cc compares ours with.

    pip install -r requirements/hta.txt
    cd tests/timeline; python hta_figures.py data/kineto_*.json >data/hta_figures.json

Not a part of `make check`: HTA brings Jupyter, pandas and plotly with it. kineto_1f1b.json is 64 ms of one
rank of bench/timeline/gpu/pipeline.py, in whole microseconds; `--make FILE` writes kineto_streams.json: two
streams of kernels, one of NCCL and one of copies, at random, so that everything overlaps everything.
"""

import importlib.metadata
import json
import os
import random
import sys


def make(path):
    chance = random.Random(20261121)
    events = []
    for stream, category, name in (
        (7, "kernel", "void at::native::elementwise_kernel<128, 4>(int)"),
        (20, "kernel", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"),
        (33, "kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
        (41, "gpu_memcpy", "Memcpy DtoD (Device -> Device)"),
    ):
        time = 5_000 + chance.randrange(400)
        for _ in range(60):
            took = chance.choice((1, 2, 7, 40, 150, 400))
            place = {"device": 0, "stream": stream, "correlation": len(events) + 1}
            event = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream}
            events.append(event | {"ts": time, "dur": took, "args": place})
            time += took + chance.choice((0, 1, 3, 50, 300))
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]}
    head |= {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2}, "baseTimeNanoseconds": 0}
    with open(path, "w") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        file.write(",\n".join(json.dumps(event, separators=(",", ":")) for event in events) + "]}\n")


def figures(path):
    from hta.trace_analysis import TraceAnalysis

    trace = TraceAnalysis(trace_files={0: path}, trace_dir="")
    found = trace.get_temporal_breakdown(visualize=False).iloc[0].to_dict()
    found |= trace.get_comm_comp_overlap(visualize=False).iloc[0].to_dict()
    types, _ = trace.get_gpu_kernel_breakdown(visualize=False)
    found |= {row["kernel_type"]: row["sum"] for _, row in types.iterrows()}
    del found["rank"]
    return found


def main():
    if sys.argv[1] == "--make":
        return make(sys.argv[2])
    result = {"HolisticTraceAnalysis": importlib.metadata.version("HolisticTraceAnalysis")}
    result |= {os.path.basename(path): figures(path) for path in sys.argv[1:]}
    json.dump(result, sys.stdout, indent=1, default=float)
    print()


if __name__ == "__main__":
    main()
