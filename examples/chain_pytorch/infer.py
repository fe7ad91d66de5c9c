"""Runs an exported program: infer.py PROGRAM"""

import sys

import torch

program = torch.export.load(sys.argv[1]).module()
for x in (-1.0, 0.5):
    print(f"x={x} y={program(torch.tensor([[x]])).item():.4f}")
