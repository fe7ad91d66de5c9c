"""Registers the device of private_device.cpp with PyTorch as "private".

`modules` of assay.toml imports this file. PyTorch compiles the device at the first import, in a minute.
PRIVATE_DEVICE_BUILD names the folder for that.
"""

import os
import pathlib
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
    sources=[str(pathlib.Path(__file__).with_name("private_device.cpp"))],
    build_directory=os.environ.get("PRIVATE_DEVICE_BUILD"),
    extra_cflags=["-O0"],
)
