"""Registers the operator that scaled_relu.cc defines; `modules` of assay.toml imports this file."""

import os
import pathlib

from paddle.utils.cpp_extension import load_op_meta_info_and_register_op

LIBRARY = pathlib.Path(os.environ.get("SCALED_RELU", pathlib.Path(__file__).with_name("scaled_relu.so")))
load_op_meta_info_and_register_op(str(LIBRARY))
