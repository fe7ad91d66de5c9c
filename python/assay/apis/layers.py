"""Layers that store the options of a function: one line for each, from the reference of the function."""

import inspect
from typing import Any

from assay.layers import Made
from assay.registry import REGISTRY, layer


def _bound(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """A constructor's arguments by name."""
    if len(args) > len(names) or set(kwargs) - set(names):
        raise TypeError(f"arguments {args} {kwargs} do not match ({', '.join(names)})")
    return {**dict(zip(names, args, strict=False)), **kwargs}


def kept(class_name: str, function: str, inputs: str, options: str = "", always: Any = None) -> None:
    """Registers a class whose call is `function` of its inputs and of the constructor's options.

    options: the constructor's parameters in order; `constructor=function` if the names differ.
    always: further arguments of the function.
    """
    pairs = [each.split("=") for each in [*options.split(), "name"]]
    names = [pair[0] for pair in pairs]
    meant = {pair[0]: pair[-1] for pair in pairs}
    taken = inputs.split()

    def make(*args: Any, **kwargs: Any) -> Made:
        given = {meant[name]: value for name, value in _bound(names, args, kwargs).items() if name != "name"}
        reference = REGISTRY[function].call

        def call(_: Any, *values: Any, **named: Any) -> Any:
            return reference(*values, **named, **given, **(always or {}))

        return Made(call)

    make.__signature__ = _signature(names)  # type: ignore[attr-defined]
    layer(class_name, inputs=" ".join(taken), like=function)(make)


def _signature(names: list[str]) -> Any:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind, default=None) for name in names])


def _all(text: str) -> None:
    """Registers the classes of lines "Class function(inputs) options"."""
    for line in text.strip().splitlines():
        class_names, rest = line.strip().split(" ", 1)
        function, rest = rest.split("(", 1)
        inputs, options = rest.split(")", 1)
        for name in class_names.split(","):
            kept(f"paddle.nn.{name}", f"paddle.nn.functional.{function}", inputs, options.strip())


_all(
    """
    CELU celu(x) alpha
    ELU elu(x) alpha
    GELU gelu(x) approximate
    GLU glu(x) axis
    Hardshrink hardshrink(x) threshold
    Hardsigmoid hardsigmoid(x)
    Hardswish hardswish(x)
    Hardtanh hardtanh(x) min max
    LeakyReLU leaky_relu(x) negative_slope
    LogSigmoid log_sigmoid(x)
    LogSoftmax log_softmax(x) axis
    Maxout maxout(x) groups axis
    Mish mish(x)
    RReLU rrelu(x) lower upper
    ReLU relu(x)
    ReLU6 relu6(x)
    SELU selu(x) scale alpha
    SiLU,Silu silu(x) inplace
    Sigmoid sigmoid(x)
    Softmax softmax(x) axis
    Softplus softplus(x) beta threshold
    Softshrink softshrink(x) threshold
    Softsign softsign(x)
    Swish swish(x)
    Tanh tanh(x)
    Tanhshrink tanhshrink(x)
    ThresholdedReLU thresholded_relu(x) threshold value
    LocalResponseNorm local_response_norm(x) size alpha beta k data_format
    ChannelShuffle channel_shuffle(x) groups data_format
    PixelShuffle pixel_shuffle(x) upscale_factor data_format
    PixelUnshuffle pixel_unshuffle(x) downscale_factor data_format
    Fold fold(x) output_sizes kernel_sizes dilations paddings strides
    Unfold unfold(x) kernel_sizes dilations paddings strides
    CosineSimilarity cosine_similarity(x1 x2) axis eps
    PairwiseDistance pairwise_distance(x y) p epsilon keepdim
    Upsample upsample(x) size scale_factor mode align_corners align_mode data_format recompute_scale_factor
    AlphaDropout alpha_dropout(x) p
    FeatureAlphaDropout feature_alpha_dropout(x) p
    Dropout dropout(x) p inplace axis mode
    Dropout2D dropout2d(x) p data_format
    Dropout3D dropout3d(x) p data_format
    AdaptiveAvgPool1D adaptive_avg_pool1d(x) output_size
    AdaptiveAvgPool2D adaptive_avg_pool2d(x) output_size data_format
    AdaptiveAvgPool3D adaptive_avg_pool3d(x) output_size data_format
    AdaptiveMaxPool1D,AdaptiveMaxPool1d adaptive_max_pool1d(x) output_size return_mask
    AdaptiveMaxPool2D,AdaptiveMaxPool2d adaptive_max_pool2d(x) output_size return_mask
    AdaptiveMaxPool3D,AdaptiveMaxPool3d adaptive_max_pool3d(x) output_size return_mask
    AvgPool1D avg_pool1d(x) kernel_size stride padding exclusive ceil_mode
    AvgPool2D avg_pool2d(x) kernel_size stride padding ceil_mode exclusive divisor_override data_format
    AvgPool3D avg_pool3d(x) kernel_size stride padding ceil_mode exclusive divisor_override data_format
    MaxPool1D max_pool1d(x) kernel_size stride padding return_mask ceil_mode
    MaxPool2D max_pool2d(x) kernel_size stride padding return_mask ceil_mode data_format
    MaxPool3D max_pool3d(x) kernel_size stride padding return_mask ceil_mode data_format
    LPPool1D,LPPool1d lp_pool1d(x) norm_type kernel_size stride padding ceil_mode data_format
    LPPool2D,LPPool2d lp_pool2d(x) norm_type kernel_size stride padding ceil_mode data_format
    FractionalMaxPool2D fractional_max_pool2d(x) output_size kernel_size random_u return_mask
    FractionalMaxPool3D fractional_max_pool3d(x) output_size kernel_size random_u return_mask
    MaxUnPool1D max_unpool1d(x indices) kernel_size stride padding data_format output_size
    MaxUnPool2D max_unpool2d(x indices) kernel_size stride padding data_format output_size
    MaxUnPool3D max_unpool3d(x indices) kernel_size stride padding data_format output_size
    BCELoss binary_cross_entropy(input label) weight reduction
    BCEWithLogitsLoss binary_cross_entropy_with_logits(logit label) weight reduction pos_weight
    CosineEmbeddingLoss cosine_embedding_loss(input1 input2 label) margin reduction
    CrossEntropyLoss cross_entropy(input label) weight ignore_index reduction soft_label axis use_softmax label_smoothing
    CTCLoss ctc_loss(log_probs labels input_lengths label_lengths norm_by_times) blank reduction zero_infinity
    GaussianNLLLoss gaussian_nll_loss(input label variance) full epsilon reduction
    HingeEmbeddingLoss hinge_embedding_loss(input label) margin reduction
    KLDivLoss kl_div(input label) reduction log_target
    L1Loss l1_loss(input label) reduction
    MSELoss mse_loss(input label) reduction
    MarginRankingLoss margin_ranking_loss(input other label) margin reduction
    MultiLabelMarginLoss multi_label_margin_loss(input label) reduction
    MultiLabelSoftMarginLoss multi_label_soft_margin_loss(input label) weight reduction
    MultiMarginLoss multi_margin_loss(input label) p margin weight reduction
    NLLLoss nll_loss(input label) weight ignore_index reduction
    PoissonNLLLoss poisson_nll_loss(input label) log_input full epsilon reduction
    RNNTLoss rnnt_loss(input label input_lengths label_lengths) blank fastemit_lambda reduction
    SmoothL1Loss smooth_l1_loss(input label) reduction delta is_huber
    SoftMarginLoss soft_margin_loss(input label) reduction
    TripletMarginLoss triplet_margin_loss(input positive negative) margin p epsilon swap reduction
    TripletMarginWithDistanceLoss triplet_margin_with_distance_loss(input positive negative) distance_function margin swap reduction
    """  # noqa: E501
)
