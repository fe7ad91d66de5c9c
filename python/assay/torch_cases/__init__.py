"""Cases with PyTorch's own names: `torch.add(Tensor([2], "float32"), 2, alpha=3)`."""
