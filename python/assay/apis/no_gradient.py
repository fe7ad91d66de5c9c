"""The reasons why no gradient is compared, for every API with `grad=False`."""

from assay.registry import no_gradient

no_gradient(
    "the result is a constant or depends only on shapes and Python numbers",
    """
    paddle.full paddle.full_like paddle.zeros paddle.zeros_like paddle.ones paddle.ones_like paddle.empty
    paddle.empty_like paddle.Tensor.new_full paddle.Tensor.new_zeros paddle.Tensor.new_ones
    paddle.Tensor.new_empty paddle.arange paddle.eye paddle.tril_indices paddle.triu_indices
    paddle.audio.functional.get_window paddle.vision.ops.prior_box
    """,
)
no_gradient(
    "the result is a random draw, whose gradient is undefined or random itself",
    """
    paddle.normal paddle.log_normal paddle.randn paddle.standard_normal paddle.randn_like paddle.rand
    paddle.rand_like paddle.uniform paddle.randint paddle.randint_like paddle.randperm paddle.bernoulli
    paddle.poisson paddle.binomial paddle.standard_gamma paddle.multinomial paddle.Tensor.multinomial
    paddle.Tensor.uniform_ paddle.Tensor.normal_ paddle.Tensor.log_normal_ paddle.Tensor.bernoulli_
    paddle.Tensor.exponential_ paddle.Tensor.cauchy_ paddle.Tensor.geometric_ paddle.normal_
    paddle.log_normal_ paddle.bernoulli_ paddle.cauchy_ paddle.geometric_ paddle.Tensor.random_
    paddle.Tensor.top_p_sampling paddle.nn.functional.gumbel_softmax
    paddle.geometric.weighted_sample_neighbors paddle.incubate.graph_sample_neighbors
    """,
)
no_gradient(
    "the result consists of integers, booleans, counts or steps",
    """
    paddle.compat.equal paddle.histogram paddle.Tensor.histogram paddle.histogramdd
    paddle.Tensor.histogramdd paddle.bincount paddle.Tensor.bincount paddle.metric.accuracy
    paddle.text.viterbi_decode paddle.geometric.reindex_graph paddle.incubate.graph_reindex
    paddle.geometric.reindex_heter_graph paddle.incubate.nn.functional.int_bincount paddle.sparse.isnan
    paddle.incubate.nn.functional.blha_get_max_len paddle.vision.ops.nms paddle.vision.ops.matrix_nms
    paddle.vision.ops.distribute_fpn_proposals paddle.vision.ops.generate_proposals
    paddle.nn.quant.weight_quantize
    """,
)
no_gradient(
    "the documentation does not say which of several equal values gets the gradient",
    """
    paddle.unique paddle.Tensor.unique paddle.unique_consecutive paddle.Tensor.unique_consecutive
    paddle.compat.unique paddle.mode paddle.Tensor.mode
    """,
)
no_gradient(
    "vectors are unique only up to sign or phase, and an upstream gradient depends on both",
    """
    paddle.linalg.svd paddle.linalg.eigh paddle.linalg.eig paddle.Tensor.eig paddle.linalg.svd_lowrank
    paddle.Tensor.svd_lowrank paddle.linalg.pca_lowrank paddle.Tensor.pca_lowrank paddle.sparse.pca_lowrank
    """,
)
no_gradient(
    "the values have no specified order, so an upstream gradient cannot be assigned to them",
    "paddle.linalg.eigvals paddle.Tensor.eigvals",
)
no_gradient(
    "Paddle has no backward kernel, and its documentation promises none",
    """
    paddle.linalg.lstsq paddle.Tensor.lstsq paddle.linspace paddle.logspace paddle.histogram_bin_edges
    paddle.Tensor.histogram_bin_edges paddle.linalg.ormqr paddle.Tensor.ormqr paddle.sparse.coalesce
    paddle.Tensor.coalesce paddle.vision.ops.box_coder paddle.vision.ops.yolo_box
    """,
)
no_gradient(
    "an inference kernel, for which Paddle registers no backward kernel",
    """
    paddle.incubate.nn.functional.fused_bias_act paddle.incubate.nn.functional.fused_layer_norm
    paddle.incubate.nn.functional.variable_length_memory_efficient_attention
    paddle.incubate.nn.functional.masked_multihead_attention
    paddle.incubate.nn.functional.block_multihead_attention
    """,
)
no_gradient(
    "the call writes values outside of the autograd graph",
    """
    paddle.Tensor.set_ paddle.Tensor.copy_ paddle.Tensor.set_value paddle.Tensor.resize_
    paddle.nn.utils.vector_to_parameters
    """,
)
no_gradient(
    "Paddle's conversion to CSR, which makes the operand, has no gradient",
    """
    paddle.Tensor.to_sparse_csr paddle.sparse.sparse_csr_tensor paddle.sparse.matmul paddle.sparse.mv
    paddle.sparse.addmm
    """,
)
no_gradient(
    "optimizer steps are not differentiated",
    " ".join(
        f"paddle.optimizer.{name}"
        for name in (
            "SGD Momentum Adagrad Adadelta RMSProp Adam AdamW Adamax NAdam RAdam Lamb Rprop ASGD".split()
        )
    ),
)
no_gradient(
    "the operator is itself an optimizer step or a derivative",
    """
    paddle._C_ops.sgd_ paddle._C_ops.momentum_ paddle._C_ops.merged_momentum_ paddle._C_ops.adam_
    paddle._C_ops.merged_adam_ paddle._C_ops.adamw_ paddle._C_ops.adamax_ paddle._C_ops.adagrad_
    paddle._C_ops.adadelta_ paddle._C_ops.rmsprop_ paddle._C_ops.fused_linear_param_grad_add
    paddle._C_ops.matmul_grad paddle._C_ops.swiglu_grad
    """,
)
no_gradient(
    "the result is a constant or a random draw, and does not depend on the tensor",
    "paddle._C_ops.full_ paddle._C_ops.gaussian",
)
no_gradient(
    "Paddle has no backward kernel, and its documentation promises none", "paddle._C_ops.clip_by_norm"
)
no_gradient(
    "quantised numbers have no derivative",
    """
    paddle.incubate.nn.functional.fp8_quant_blockwise paddle.incubate.nn.functional.fused_act_dequant
    paddle.incubate.nn.functional.fused_stack_transpose_quant
    paddle.incubate.nn.functional.fused_transpose_split_quant
    paddle.incubate.nn.functional.fused_transpose_wlch_split_quant
    paddle.incubate.nn.functional.fused_weighted_swiglu_act_quant
    paddle.incubate.nn.functional.fp8_gemm_blockwise paddle.linalg.fp8_fp8_half_gemm_fused
    paddle.incubate.nn.functional.moe_gate_dispatch_and_quant
    """,
)
no_gradient(
    "Paddle's own derivative is another operator, which callers use explicitly",
    """
    paddle.nn.functional.moe_permute paddle.nn.functional.moe_unpermute
    paddle.incubate.nn.functional.fused_swiglu_weighted_bwd
    paddle.incubate.nn.functional.cross_entropy_with_softmax_bwd_w_downcast
    paddle.incubate.nn.functional.embedding_grad_add_to_
    paddle.incubate.nn.functional.build_src_rank_and_local_expert_id
    paddle.incubate.nn.functional.expand_modality_expert_id
    """,
)
