"""Operators of paddle._C_ops that do what a public function does (assay.operators)."""

from assay.operators import derive

# The arguments by position, and the operators that take them.
_OF_THEIR_NAME = {
    "x": """
        abs abs_ acos acos_ acosh acosh_ angle as_complex as_real asin asin_ asinh asinh_ assign assign_
        atan atan_ atanh atanh_ bernoulli bitwise_not bitwise_not_ ceil ceil_ conj cos cos_ cosh cosh_ det
        digamma digamma_ erf erf_ erfinv erfinv_ exp exp_ expm1 expm1_ floor floor_ gammaln gammaln_
        hardswish i0 i0_ i0e i1 i1e imag inverse is_empty isfinite isinf isnan lgamma lgamma_ log log10
        log10_ log1p log1p_ log2 log2_ log_ logical_not logical_not_ logsigmoid multi_dot numel real
        reciprocal reciprocal_ relu relu6 relu_ rsqrt rsqrt_ sigmoid sigmoid_ sign silu silu_ sin sin_ sinh
        sinh_ slogdet softsign sqrt sqrt_ square square_ svdvals swish tan tan_ tanh tanh_""",
    "x, y": """
        add add_ atan2 bitwise_and bitwise_and_ bitwise_or bitwise_or_ bitwise_xor bitwise_xor_ bmm copysign
        copysign_ divide divide_ dot equal equal_ equal_all floor_divide fmax fmin gammaincc gammaincc_
        greater_equal greater_equal_ greater_than greater_than_ heaviside kron less_equal less_equal_
        less_than less_than_ logical_and logical_and_ logical_or logical_or_ logical_xor logical_xor_
        maximum minimum multiply multiply_ nextafter not_equal not_equal_ pow pow_ remainder remainder_
        solve subtract subtract_ swiglu""",
    "x, axis": "concat flip log_softmax reverse squeeze squeeze_ stack unsqueeze unsqueeze_",
    "x, axis, keepdim": "all amax amin any max mean min mode",
    "input, x, y, beta, alpha": "addmm addmm_ baddbmm baddbmm_",
    "x, y, is_arithmetic": "bitwise_left_shift bitwise_left_shift_ bitwise_right_shift bitwise_right_shift_",
    "x, diagonal": "tril tril_ triu triu_",
    "input": "broadcast_tensors trunc trunc_",
    "x, alpha": "celu elu elu_",
    "x, shape": "expand reshape reshape_",
    "x, n": "matrix_power polygamma polygamma_",
    "x, y, rtol, atol, equal_nan": "allclose isclose",
    "x, dtype": "cast cast_",
    "x, min, max": "clip clip_",
    "x, axis, dtype": "cummax cummin",
    "x, offset, axis1, axis2": "diagonal trace",
    "x, start_axis, stop_axis": "flatten flatten_",
    "x, index, axis": "gather index_select",
    "x, index": "gather_nd index_sample",
    "x, threshold": "hardshrink softshrink",
    "x, indices, value, accumulate": "index_put index_put_",
    "x, negative_slope": "leaky_relu leaky_relu_",
    "x, y, weight": "lerp lerp_",
    "x, eps": "logit logit_",
    "x, mask, value": "masked_fill masked_fill_",
    "x, axis, dtype, keepdim": "nansum sum",
    "arr, indices, values, axis, reduce, include_self": "put_along_axis put_along_axis_",
    "x, decimals": "round round_",
    "x, scale, bias, bias_after_scale": "scale scale_",
    "x, index, updates, overwrite": "scatter scatter_",
    "x, threshold, value": "thresholded_relu thresholded_relu_",
    "x, perm": "transpose transpose_",
    "condition, x, y": "where where_",
    "inputs": "add_n",
    "x, weights, minlength": "bincount",
    "x, groups, data_format": "channel_shuffle",
    "x, upper": "cholesky",
    "x, y, upper": "cholesky_solve",
    "real, imag": "complex",
    "x, shape, offsets": "crop",
    "x, y, axis": "cross",
    "x, offset, padding_value": "diag",
    "input, offset, dim1, dim2": "diag_embed",
    "x, y, p": "dist",
    "x, UPLO": "eigh",
    "x, weight, padding_idx, sparse": "embedding",
    "ids, parents": "gather_tree",
    "x, approximate": "gelu",
    "x, grid, mode, padding_mode, align_corners": "grid_sample",
    "x, slope, offset": "hardsigmoid",
    "input, weight, bins, min, max, density": "histogram",
    "x, k, axis, keepdim": "kthvalue",
    "label, prior_dist, epsilon": "label_smooth",
    "input, label, epsilon": "log_loss",
    "b, lu, pivots, trans": "lu_solve",
    "x, y, unpack_ludata, unpack_pivots": "lu_unpack",
    "x, mask": "masked_select",
    "x, y, transpose_x, transpose_y": "matmul",
    "x, groups, axis": "maxout",
    "inputs, index": "multiplex",
    "x, vec": "mv",
    "x, num_classes": "one_hot",
    "x, upscale_factor, data_format": "pixel_shuffle",
    "x, downscale_factor, data_format": "pixel_unshuffle",
    "x, target": "reduce_as",
    "x, repeats, axis, output_size": "repeat_interleave",
    "x, shifts, axis": "roll",
    "x, index, updates": "scatter_nd_add",
    "sorted_sequence, values, out_int32, right": "searchsorted",
    "x, scale, alpha": "selu",
    "input, index_num, nshards, shard_id, ignore_value": "shard_index",
    "x, beta, threshold": "softplus",
    "x, scale_a, scale_b": "stanh",
    "x, axes, starts, ends, strides": "strided_slice",
    "x, full_matrices": "svd",
    "arr, indices, axis": "take_along_axis",
    "x, seg_num, shift_ratio, data_format": "temporal_shift",
    "x, repeat_times": "tile",
    "x, k, axis, largest, sorted": "topk",
    "x, y, upper, transpose, unitriangular": "triangular_solve",
    "input, axis": "unbind",
    "input=x, dims=shape, stride, offset": "as_strided",
    "shape, value=fill_value, dtype, place=": "full",
    "x, value=fill_value, dtype, place=": "full_like",
    "shape, dtype, place=": "empty ones zeros",
    "x, dtype, place=": "empty_like ones_like zeros_like",
    "num_rows, num_columns, dtype, place=": "eye",
    "low, high, shape, dtype, place=": "randint",
    "n, dtype, place=": "randperm",
    "rows=row, cols=col, offset, dtype, place=": "tril_indices",
    "row, col, offset, dtype, place=": "triu_indices",
    "shape, dtype, min, max, seed, place=": "uniform",
    "x, t_min=min, t_max=max": "hardtanh hardtanh_",
    "x, index, add_value=value, axis": "index_add index_add_",
    "x, axis, keepdim, reduce_all=": "logsumexp prod",
    "condition=x": "nonzero",
    "x, max_len=maxlen, out_dtype=dtype": "sequence_mask",
    "x, y, target_shape=": "expand_as",
    "x=x1, y=x2, weight, bias": "bilinear",
    "x, x_scale": "fused_act_dequant",
    "x, input_scales, tokens_per_expert, pow_2_scales": "fused_transpose_split_quant",
    "x, tokens_per_expert, pow_2_scales": "fused_transpose_wlch_split_quant",
    "x, prob, using_pow2_scaling": "fused_weighted_swiglu_act_quant",
    "o1, do2_s, unzipped_probs": "fused_swiglu_weighted_bwd",
    "x, y, bias, transpose_x, transpose_y, scale, output_dtype, activation_type=act": """
        fp8_fp8_half_gemm_fused""",
    "x, gate_logits, corr_bias, k, capacity, use_pad": "moe_gate_dispatch",
    "x, gate_logits, corr_bias, k, capacity, world_size": "moe_gate_dispatch_permute",
    "x, gate_logits, corr_bias, k, capacity, use_pad, use_pow2_scale": "moe_gate_dispatch_and_quant",
    "x, combine_weights, scatter_index": "moe_combine",
    "label, softmax, loss_grad": "cross_entropy_with_softmax_bwd_w_downcast",
    "expert_num_global_tensor, expert_num_global, num_local_experts": "build_src_rank_and_local_expert_id",
    "expert_id, num_expert_per_modality, group_size, modality_offset, is_group_expert": """
        expand_modality_expert_id""",
}
_BALANCE = (
    "gate_prob, dispatch_mask, tokens_mask, dispatch_tokens_mask, num_experts, use_group, moe_k, clip_min"
)
_UNPERMUTE = (
    "hidden_states_unzipped, zipped_expertwise_rowmap, expert_routemap_topk, token_prob_unzipped, "
    "total_zipped_tokens_num=total_zipped_tokens, num_experts, use_mix_precision=using_mix_precision, "
    "using_weighted_combine"
)
# The arguments, the operators, and the function whose name is another.
_OF_ANOTHER_NAME = (
    ("x, axis", "softmax softmax_", "nn.functional.softmax"),
    ("x, repeats, axis, output_size", "repeat_interleave_with_tensor_index", "repeat_interleave"),
    ("input=x, dims=shape_or_dtype", "view_shape", "view"),
    ("input=x, axis, size, step", "tensor_unfold", "unfold"),
    ("x", "mean_all", "mean"),
    (_BALANCE, "cal_aux_loss", "incubate.nn.functional.cal_aux_loss"),
    (_UNPERMUTE, "moe_unpermute", "nn.functional.moe_unpermute"),
    ("x", "fused_stack_transpose_quant", "incubate.nn.functional.fused_stack_transpose_quant"),
    ("x, mask", "fused_softmax_mask", "incubate.softmax_mask_fuse"),
    ("X=x", "fused_softmax_mask_upper_triangle", "incubate.softmax_mask_fuse_upper_triangle"),
)

for _signature, _names in _OF_THEIR_NAME.items():
    derive(_signature, _names)
for _signature, _names, _function in _OF_ANOTHER_NAME:
    derive(_signature, _names, _function)
