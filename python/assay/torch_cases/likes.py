"""Data for torch cases: Paddle's functions and parameters of the same meaning."""

# Paddle's name of a parameter: PyTorch's names for it, the first that a function has counts.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "x": ("input", "self", "tensor", "tensors"),
    "y": ("other", "exponent", "tensor2", "mat2", "vec"),
    "input": ("self",),
    "axis": ("dim", "dims", "dim0"),
    "keepdim": ("keepdims",),
    "epsilon": ("eps",),
    "label": ("target",),
    "perm": ("dims",),
    "num_samples": ("sample_size",),
    "index": ("indices",),
    "offset": ("diagonal",),
    "diagonal": ("offset",),
    "repeat_times": ("dims", "repeats", "sizes"),
    "shape": ("size", "sizes"),
    "num_or_sections": ("split_size_or_sections", "split_size", "indices_or_sections", "chunks"),
    "value": ("source", "values"),
    "updates": ("src", "source"),
    "values": ("src", "source", "value"),
    "arr": ("input", "self"),
    "threshold": ("lambd",),
    "mat": ("mat1",),
    "p": ("ord",),
}

# Functions of PyTorch and Paddle's of the same meaning, by where Paddle's are.
_NAMES = {
    "paddle.nn.functional": (
        "grid_sampler=grid_sample grid_sampler_2d=grid_sample grid_sampler_3d=grid_sample "
        "native_batch_norm=batch_norm _batch_norm_with_update=batch_norm expit=sigmoid "
        "conv_transpose1d=conv1d_transpose conv_transpose2d=conv2d_transpose "
        "conv_transpose3d=conv3d_transpose multilabel_soft_margin_loss=multi_label_soft_margin_loss "
        "softmin=softmax threshold=thresholded_relu col2im=fold im2col=unfold constant_pad_nd=pad"
    ),
    "paddle.linalg": ("cholesky_ex=cholesky lu_factor=lu lu_factor_ex=lu"),
    "paddle": (
        "absolute=abs arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctan2=atan2 "
        "arctanh=atanh clamp=clip div=divide true_divide=divide mul=multiply sub=subtract eq=equal "
        "ne=not_equal ge=greater_equal gt=greater_than le=less_equal lt=less_than fmod=mod fix=trunc "
        "trapz=trapezoid negative=neg psi=digamma igamma=gammainc igammac=gammaincc gammaln=lgamma "
        "cat=concat concatenate=concat permute=transpose movedim=moveaxis swapaxes=transpose ger=outer "
        "mvlgamma=multigammaln xlogy=multiply xlog1py=multiply logaddexp2=logaddexp std_mean=std "
        "var_mean=var"
    ),
}
# PyTorch's functions by their last name: Paddle's function of the same meaning, where the names differ.
LIKES: dict[str, str] = {
    own: f"{home}.{theirs}"
    for home, pairs in _NAMES.items()
    for own, theirs in (pair.split("=") for pair in pairs.split())
}
for _rank in (1, 2, 3):
    for _pool in (f"max_pool{_rank}d", f"adaptive_max_pool{_rank}d"):
        LIKES[f"{_pool}_with_indices"] = f"paddle.nn.functional.{_pool}"
# Paddle's functions of these names mean something else.
_OTHERS = "scatter scatter_add scatter_reduce index_reduce bucketize lu lu_solve lu_unpack put gather"
LIKES |= dict.fromkeys([*_OTHERS.split(), "torch.svd"], "")

# Families (assay.apis) of functions that Paddle lacks, by their last name.
FAMILIES: dict[str, str] = {
    name: family
    for family, names in {
        "unary": (
            "erfc erfcx exp2 entr log_ndtr ndtr ndtri airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 "
            "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 spherical_bessel_j0 "
            "scaled_modified_bessel_k0 scaled_modified_bessel_k1 signbit sgn positive rsqrt"
        ),
        "arithmetic": "float_power fmod floor_divide rsub addcmul addcdiv zeta clamp_min clamp_max",
        "creation": "fill",
        "products": "vdot",
        "reduction": "aminmax sum_to_size",
        "loss": "huber_loss",
        "convolution": "convolution convolution_overrideable slow_conv2d thnn_conv2d conv_depthwise3d",
        "resize": " ".join(
            f"upsample_{mode}"
            for mode in "linear1d bilinear2d bicubic2d trilinear3d nearest1d nearest2d nearest3d".split()
        ),
        "embedding": "embedding_dense embedding_sparse",
        "casting": (
            "copy to_copy lift_fresh lift_fresh_copy byte char short int long bool half float double "
            "bfloat16 cfloat cdouble to type"
        ),
        "shape": (
            "swapdims swapaxes narrow unfold view_as expand_as reshape_as fliplr flipud select unsafe_chunk "
            "unsafe_split resolve_conj resolve_neg alias_copy as_strided_copy detach_copy diagonal_copy "
            "expand_copy narrow_copy permute_copy select_copy slice_copy split_copy split_with_sizes_copy "
            "squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy "
            "as_strided_scatter conj_physical unsafe_view reshape_alias"
        ),
    }.items()
    for name in names.split()
}
