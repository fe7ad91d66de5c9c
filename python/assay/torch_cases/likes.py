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
    "chunks": ("chunks",),
    "value": ("source", "value", "values"),
    "updates": ("src", "source"),
    "values": ("src", "source", "value"),
    "arr": ("input", "self"),
    "shifts": ("shifts",),
    "threshold": ("threshold", "lambd"),
    "negative_slope": ("negative_slope",),
    "sorted_sequence": ("sorted_sequence",),
    "mat": ("mat1",),
    "p": ("ord",),
}

# PyTorch's functions by their last name: Paddle's function of the same meaning, where the names differ.
LIKES: dict[str, str] = {
    **dict.fromkeys(  # of another meaning
        "scatter scatter_add scatter_reduce index_reduce bucketize lu_solve lu_unpack put gather".split(),
        "",
    ),
    "grid_sampler": "paddle.nn.functional.grid_sample",
    "grid_sampler_2d": "paddle.nn.functional.grid_sample",
    "grid_sampler_3d": "paddle.nn.functional.grid_sample",
    "native_batch_norm": "paddle.nn.functional.batch_norm",
    "_batch_norm_with_update": "paddle.nn.functional.batch_norm",
    "torch.svd": "",
    "cholesky_ex": "paddle.linalg.cholesky",
    "lu_factor": "paddle.linalg.lu",
    "lu_factor_ex": "paddle.linalg.lu",
    "lu": "",
    "absolute": "paddle.abs",
    "arccos": "paddle.acos",
    "arccosh": "paddle.acosh",
    "arcsin": "paddle.asin",
    "arcsinh": "paddle.asinh",
    "arctan": "paddle.atan",
    "arctan2": "paddle.atan2",
    "arctanh": "paddle.atanh",
    "clamp": "paddle.clip",
    "div": "paddle.divide",
    "true_divide": "paddle.divide",
    "mul": "paddle.multiply",
    "sub": "paddle.subtract",
    "eq": "paddle.equal",
    "ne": "paddle.not_equal",
    "ge": "paddle.greater_equal",
    "gt": "paddle.greater_than",
    "le": "paddle.less_equal",
    "lt": "paddle.less_than",
    "fmod": "paddle.mod",
    "fix": "paddle.trunc",
    "trapz": "paddle.trapezoid",
    "negative": "paddle.neg",
    "psi": "paddle.digamma",
    "igamma": "paddle.gammainc",
    "igammac": "paddle.gammaincc",
    "lgamma": "paddle.lgamma",
    "gammaln": "paddle.lgamma",
    "expit": "paddle.nn.functional.sigmoid",
    "cat": "paddle.concat",
    "concatenate": "paddle.concat",
    "permute": "paddle.transpose",
    "movedim": "paddle.moveaxis",
    "swapaxes": "paddle.transpose",
    "inner": "paddle.inner",
    "ger": "paddle.outer",
    "mm": "paddle.mm",
    "amax": "paddle.amax",
    "amin": "paddle.amin",
    "relu": "paddle.nn.functional.relu",
    "logit": "paddle.logit",
    "mvlgamma": "paddle.multigammaln",
    "xlogy": "paddle.multiply",
    "xlog1py": "paddle.multiply",
    "conv_transpose1d": "paddle.nn.functional.conv1d_transpose",
    "conv_transpose2d": "paddle.nn.functional.conv2d_transpose",
    "conv_transpose3d": "paddle.nn.functional.conv3d_transpose",
    "multilabel_soft_margin_loss": "paddle.nn.functional.multi_label_soft_margin_loss",
    "softmin": "paddle.nn.functional.softmax",
    "threshold": "paddle.nn.functional.thresholded_relu",
    "col2im": "paddle.nn.functional.fold",
    "im2col": "paddle.nn.functional.unfold",
    "constant_pad_nd": "paddle.nn.functional.pad",
    "logaddexp2": "paddle.logaddexp",
    "std_mean": "paddle.std",
    "var_mean": "paddle.var",
    **{
        f"{pool}{rank}d_with_indices": f"paddle.nn.functional.{pool}{rank}d"
        for pool in ("max_pool", "adaptive_max_pool")
        for rank in (1, 2, 3)
    },
}

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
