"""Other names and in-place forms of registered functions. Names with other behaviour are in a family file."""

from assay.registry import alias

for _stem in "equal not_equal less_than less_equal greater_than greater_equal".split():
    _public = "" if _stem == "not_equal" else f"paddle.{_stem}_ "
    alias(f"paddle.{_stem}", f"{_public}paddle.Tensor.{_stem}_")
alias("paddle.less_than", "paddle.less_ paddle.Tensor.less_")
alias("paddle.where", "paddle.where_ paddle.Tensor.where_", changes="x")
for _stem in "normal log_normal bernoulli cauchy geometric".split():
    alias(f"paddle.Tensor.{_stem}_", f"paddle.{_stem}_")
alias("paddle.scatter_add", "paddle.scatter_add_ paddle.Tensor.scatter_add_")

alias("paddle.transpose", "paddle.swapaxes paddle.swapdims paddle.Tensor.swapaxes paddle.Tensor.swapdims")
alias("paddle.take_along_axis", "paddle.take_along_dim paddle.Tensor.take_along_dim")
alias("paddle.diagonal", "paddle.linalg.diagonal")
alias("paddle.logsumexp", "paddle.special.logsumexp")
alias("paddle.expm1", "paddle.special.expm1")
for _stem in "conv1d conv2d conv3d group_norm layer_norm adaptive_avg_pool1d".split():
    alias(f"paddle.nn.functional.{_stem}", f"paddle.{_stem}")

# PyTorch's spelling of class names.
for _rank in "123":
    alias(f"paddle.nn.AdaptiveAvgPool{_rank}D", f"paddle.nn.AdaptiveAvgPool{_rank}d")
    alias(f"paddle.nn.MaxUnPool{_rank}D", f"paddle.nn.MaxUnpool{_rank}d")
alias("paddle.nn.SmoothL1Loss", "paddle.nn.HuberLoss")

# Functions of lists and numbers that Paddle also binds to Tensor.
for _stem in (
    "add_n block_diag broadcast_shape broadcast_shapes broadcast_tensors concat increment is_tensor "
    "negative polar scatter_nd stack"
).split():
    alias(f"paddle.{_stem}", f"paddle.Tensor.{_stem}")
for _stem in "stft istft".split():
    alias(f"paddle.signal.{_stem}", f"paddle.Tensor.{_stem}")
