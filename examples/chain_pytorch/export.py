"""Exports trained weights as a program: export.py WEIGHTS PROGRAM"""

import sys

import torch
from model import POINTS, new_model

model = new_model()
model.load_state_dict(torch.load(sys.argv[1], weights_only=True))
torch.export.save(torch.export.export(model.eval(), (POINTS[:1],)), sys.argv[2])
# For ONNX Runtime (needs the packages onnx and onnxscript):
# torch.onnx.export(model.eval(), (POINTS[:1],), "out/model.onnx", dynamo=True)
