"""What CUPTI takes of the processor at each kernel launch, and what assay adds to it.

    launch_cost.py LIBCUPTI
    assay timeline record --out FOLDER -- python launch_cost.py LIBCUPTI

Launches an empty kernel in bursts that a queue can hold, and prints nanoseconds of the launching thread for
each: without CUPTI and with CUPTI's kernel records, by turns in one process, written to buffers that nobody
reads. Under assay, which has CUPTI for itself, those with assay alone. Needs a C compiler.
"""

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile

import torch

BURST, TURNS, BURSTS = 800, 5, 20
KERNEL_RECORDS = 10  # CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
BUFFER = 64 << 20
PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing() { ret; }
"""
LAUNCHES = """
#include <stdint.h>
#include <time.h>
typedef unsigned U;
typedef int (*Launch)(void*, U, U, U, U, U, U, U, void*, void**, void**);
static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}
int64_t burst(Launch launch, void* kernel, int count) {
  const int64_t begin = now();
  for (int i = 0; i < count; ++i) launch(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
  return now() - begin;
}
"""


def checked(result):
    if result:
        sys.exit(f"launch_cost: the driver or CUPTI says {result}")


def launcher():
    """A function that launches a burst and returns ns of the thread for each launch."""
    torch.zeros(1, device="cuda")
    driver = ctypes.CDLL("libcuda.so.1")
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    checked(driver.cuModuleLoadData(ctypes.byref(module), PTX))
    checked(driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"nothing"))
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "launches.c"), os.path.join(folder, "launches.so")
    with open(source, "w") as file:
        file.write(LAUNCHES)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    function = ctypes.CDLL(library).burst
    function.restype = ctypes.c_int64
    launch = ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p)

    def burst():
        torch.cuda.synchronize()
        taken = function(launch, kernel, BURST)
        torch.cuda.synchronize()
        return taken / BURST

    for _ in range(BURSTS):
        burst()
    return burst


def shown(what, taken):
    print(f"{what}: median {statistics.median(taken):.0f} ns a launch, least {min(taken):.0f} ns")


def main():
    burst = launcher()
    if os.environ.get("ASSAY_RECORD_DIR"):
        shown("recorded by assay", [burst() for _ in range(TURNS * BURSTS)])
        return
    cupti = ctypes.CDLL(sys.argv[1])
    buffers = [(ctypes.c_char * BUFFER)() for _ in range(4)]
    given = []

    def wanted(buffer, size, records):
        given.append(buffers[len(given) % len(buffers)])
        buffer[0], size[0], records[0] = ctypes.addressof(given[-1]), BUFFER, 0

    pointer = ctypes.POINTER
    wanted = ctypes.CFUNCTYPE(
        None, pointer(ctypes.c_void_p), pointer(ctypes.c_size_t), pointer(ctypes.c_size_t)
    )(wanted)
    full = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
    )(lambda *_: None)
    checked(cupti.cuptiActivityRegisterCallbacks(wanted, full))
    plain, recorded = [], []
    for _ in range(TURNS):
        plain += [burst() for _ in range(BURSTS)]
        checked(cupti.cuptiActivityEnable(KERNEL_RECORDS))
        recorded += [burst() for _ in range(BURSTS)]
        checked(cupti.cuptiActivityDisable(KERNEL_RECORDS))
        checked(cupti.cuptiActivityFlushAll(1))
    shown("plain", plain)
    shown("CUPTI's kernel records", recorded)


main()
