"""`assay capture`: writes the calls that a program makes to PyTorch or Paddle as cases.

A program under capture runs these files inside itself: `hook/sitecustomize.py` waits for the import of the
framework, `torch_calls` or `paddle_calls` sees the calls, and `recorder` writes them. Nothing here may change
what the program computes.
"""
