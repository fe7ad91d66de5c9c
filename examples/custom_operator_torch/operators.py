"""Two operators of PyTorch: scaled_relu(x, factor), and a twin that is wrong in float16 and in its gradient.

`modules` of assay.toml imports this file. An operator in C++ is loaded here: torch.ops.load_library(FILE).
"""

import torch


@torch.library.custom_op("examples::scaled_relu", mutates_args=())
def scaled_relu(x: torch.Tensor, factor: float) -> torch.Tensor:
    """relu(x) * factor."""
    return torch.relu(x) * factor


@torch.library.custom_op("examples::wrong_scaled_relu", mutates_args=())
def wrong_scaled_relu(x: torch.Tensor, factor: float) -> torch.Tensor:
    """The same, but a factor that is rounded to half precision in float16."""
    return torch.relu(x) * (round(factor, 2) if x.dtype == torch.float16 else factor)


@torch.library.custom_op("examples::pick_rows", mutates_args=())
def pick_rows(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Rows of a table."""
    return table[index].clone()


def keep(ctx, inputs, output):
    """What the gradient needs."""
    ctx.x, ctx.factor = inputs


scaled_relu.register_autograd(lambda ctx, grad: (grad * (ctx.x > 0) * ctx.factor, None), setup_context=keep)
# Without the factor.
wrong_scaled_relu.register_autograd(lambda ctx, grad: (grad * (ctx.x > 0), None), setup_context=keep)
