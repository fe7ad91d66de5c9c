"""Prints the loss of trained weights: evaluate.py WEIGHTS"""

import sys

import torch
from model import POINTS, loss_of, new_model

model = new_model()
model.load_state_dict(torch.load(sys.argv[1], weights_only=True))
loss = loss_of(model, POINTS).item()
print(f"eval_loss: {loss:.6f}")
sys.exit(loss > 0.1)
