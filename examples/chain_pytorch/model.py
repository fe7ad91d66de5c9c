"""A model that learns y = 3 x - 1, and its points."""

import torch

POINTS = torch.linspace(-1, 1, 21).reshape(-1, 1)


def new_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(1, 1)


def loss_of(model: torch.nn.Module, points: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(model(points), 3 * points - 1)
