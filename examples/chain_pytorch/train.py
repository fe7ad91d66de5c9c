"""Trains on one process, or on those of torchrun."""

import argparse
import os
import pathlib

import torch
from model import POINTS, loss_of, new_model

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--out", type=pathlib.Path, default="out")
options = parser.parse_args()

ranks = int(os.environ.get("WORLD_SIZE", "1"))
rank = int(os.environ.get("RANK", "0"))
model = new_model()
if ranks > 1:
    torch.distributed.init_process_group("gloo")
    trained = torch.nn.parallel.DistributedDataParallel(model)
else:
    trained = model
optimizer = torch.optim.SGD(trained.parameters(), lr=0.5)
for epoch in range(1, options.epochs + 1):
    loss = loss_of(trained, POINTS[rank::ranks])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        print(f"epoch {epoch}/{options.epochs} loss {loss.item():.6f}", flush=True)
if rank == 0:
    options.out.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.out / "weights.pt")
if ranks > 1:
    torch.distributed.destroy_process_group()
