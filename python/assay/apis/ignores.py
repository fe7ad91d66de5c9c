"""Parameters that references do not read although they change results (assay.ignored)."""

from assay.registry import ignores

NN = "paddle.nn.functional."
FUSED = "paddle.incubate.nn.functional."
SPARSE = "paddle.sparse.nn.functional."

ignores("one rank has all classes", "group", f"{NN}class_center_sample {NN}margin_cross_entropy")
ignores(
    "nothing is dropped, and each query head has its own key head",
    "dropout_p enable_gqa",
    "paddle.compat.nn.functional.scaled_dot_product_attention",
)
ignores(
    "results are not quantized",
    "quant_round_type quant_max_bound quant_min_bound",
    f"{FUSED}fused_bias_act {FUSED}fused_layer_norm {FUSED}fused_rms_norm {FUSED}block_multihead_attention "
    f"{FUSED}masked_multihead_attention",
)
ignores(
    "the cache is not quantized",
    "cache_k_quant_scales cache_v_quant_scales cache_k_dequant_scales cache_v_dequant_scales "
    "use_dynamic_cachekv_quant pre_value_cache",
    f"{FUSED}block_multihead_attention",
)
ignores(
    "it computes in the dtype of its inputs",
    "compute_dtype",
    f"{FUSED}block_multihead_attention {FUSED}masked_multihead_attention",
)
ignores("there is no prefix", "pre_cache_length", f"{FUSED}variable_length_memory_efficient_attention")
ignores("nothing is dropped between layers", "dropout", "paddle.nn.GRU paddle.nn.LSTM paddle.nn.SimpleRNN")
ignores("the hidden state is not projected", "proj_size", "paddle.nn.LSTM paddle.nn.LSTMCell")
ignores(
    "parameters have the default dtype",
    "dtype",
    "paddle.nn.Conv1D paddle.nn.Conv1d paddle.nn.Conv2D paddle.nn.Conv2d paddle.nn.Conv3D paddle.nn.Conv3d "
    "paddle.nn.Embedding paddle.nn.GroupNorm paddle.nn.LayerNorm paddle.nn.BatchNorm",
)
ignores("the weight is filled and learns", "_weight _freeze", "paddle.nn.Embedding")
ignores("it trains", "is_test trainable_statistics", "paddle.nn.BatchNorm")
ignores("the draw has no threshold", "mode threshold", "paddle.Tensor.top_p_sampling")
ignores("one scale for each column", "group_size", "paddle.nn.quant.weight_only_linear")
ignores("it does not filter", "antialias recompute_scale_factor", f"{NN}interpolate {NN}upsample")
ignores("the sequence is sorted", "sorter", "paddle.searchsorted")
ignores("channels come last, in one group", "groups data_format", f"{SPARSE}conv2d {SPARSE}conv3d")
ignores("channels come last", "data_format", f"{SPARSE}max_pool3d")
ignores(
    "channels come last, in one group; indices are not kept",
    "groups data_format key",
    f"{SPARSE}subm_conv2d {SPARSE}subm_conv2d_igemm {SPARSE}subm_conv3d {SPARSE}subm_conv3d_igemm",
)
