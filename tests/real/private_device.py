"""Registers the device of private_device.cpp with PyTorch as "private".

ASSAY_PRIVATE_BUILD is the folder that it is built in."""

import os
import types

import torch
from torch.utils import cpp_extension, rename_privateuse1_backend

device = types.ModuleType("torch.private")
device.is_available = lambda: True
device.device_count = lambda: 1
device.current_device = lambda: 0
device._is_in_bad_fork = lambda: False
device.manual_seed_all = lambda seed: None

rename_privateuse1_backend("private")
torch._register_device_module("private", device)
cpp_extension.load(
    name="private_device_native",
    sources=[os.environ["ASSAY_PRIVATE_BUILD"] + "/private_device.cpp"],
    build_directory=os.environ["ASSAY_PRIVATE_BUILD"],
    extra_cflags=["-O0"],
)
