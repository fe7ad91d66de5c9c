"""References of operators whose kernels no CPU has, against published examples, definitions and identities.

test_kernels.py runs it in PyTorch's Python. Expected values come from Paddle's documentation, from PyTorch's
own optimizers and derivatives, or are computed by hand.
"""

import math
import os
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ["ASSAY_APIS"] = str(ROOT / "examples" / "custom_operator" / "references")

from assay.registry import REGISTRY, load_all  # noqa: E402

load_all()
FUSED, NN, OPERATOR = "paddle.incubate.nn.functional.", "paddle.nn.functional.", "paddle._C_ops."


def reference(api):
    return REGISTRY[api].call


def drawn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def near(found, wanted, tolerance=1e-12):
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


# -- optimizers, against PyTorch's; their numbers are exact in float32 --


def three_steps(make, step, **state):
    """Three steps of PyTorch's optimizer, and of the operator with the state that it keeps."""
    value, grads = drawn(5), [drawn(5, seed=seed) for seed in (1, 2, 3)]
    theirs = torch.nn.Parameter(value.clone())
    optimizer = make([theirs])
    for grad in grads:
        theirs.grad = grad.clone()
        optimizer.step()
        value = step(value, grad, state)
    near(value, theirs.detach())


def zeros(*names):
    return {name: torch.zeros(5, dtype=torch.float64) for name in names}


RATE = torch.tensor([0.1], dtype=torch.float64)
POWERS = {name: torch.tensor([value], dtype=torch.float64) for name, value in (("b1", 0.9), ("b2", 0.99))}


def test_sgd():
    sgd = reference(f"{OPERATOR}sgd_")
    three_steps(lambda p: torch.optim.SGD(p, 0.1), lambda v, g, s: sgd(v, RATE, g, None, False))


def momentum_steps(nesterov, decay):
    momentum, rest = reference(f"{OPERATOR}momentum_"), ("l2_decay", decay, False, 1.0)
    three_steps(
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.875, nesterov=nesterov, weight_decay=decay),
        lambda v, g, s: momentum(v, g, s["v"], RATE, None, 0.875, nesterov, *rest),
        **zeros("v"),
    )


def test_momentum_with_and_without_nesterov():
    for nesterov in (False, True):
        momentum_steps(nesterov, 0.0)
        momentum_steps(nesterov, 0.25)


def powers():
    return {name: value.clone() for name, value in POWERS.items()}


def adam_steps(amsgrad):
    adam, rest = reference(f"{OPERATOR}adam_"), (0.9, 0.99, 1e-8, False, 1000, False, False, amsgrad)
    three_steps(
        lambda p: torch.optim.Adam(p, 0.1, betas=(0.9, 0.99), eps=1e-8, amsgrad=amsgrad),
        lambda v, g, s: adam(v, g, RATE, s["m"], s["s"], s["x"], s["b1"], s["b2"], None, None, *rest),
        **zeros("m", "s", "x"), **powers(),
    )  # fmt: skip


def test_adam_and_amsgrad():
    adam_steps(False)
    adam_steps(True)


def test_adamw_decays():
    adamw = reference(f"{OPERATOR}adamw_")
    three_steps(
        lambda p: torch.optim.AdamW(p, 0.1, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.25),
        lambda v, g, s: adamw(
            v, g, RATE, s["m"], s["s"], None, s["b1"], s["b2"], None, None, 0.9, 0.99, 1e-8, 1.0, 0.25, True,
            False, 1000, False, False, False,
        ),
        **zeros("m", "s"), **powers(),
    )  # fmt: skip


def test_adagrad_and_adadelta_and_adamax():
    adagrad, adadelta = reference(f"{OPERATOR}adagrad_"), reference(f"{OPERATOR}adadelta_")
    three_steps(
        lambda p: torch.optim.Adagrad(p, 0.1, eps=2**-20),
        lambda v, g, s: adagrad(v, g, s["m"], RATE, None, 2**-20, False),
        **zeros("m"),
    )
    three_steps(
        lambda p: torch.optim.Adadelta(p, 0.1, rho=0.9375, eps=2**-20),
        lambda v, g, s: adadelta(v, g, s["a"], s["b"], RATE, None, 0.9375, 2**-20, False),
        **zeros("a", "b"),
    )


def test_a_master_copy_keeps_what_bfloat16_loses():
    master, param = torch.full((3,), 1.0), torch.ones(3, dtype=torch.bfloat16)
    grad = torch.full((3,), 2.0**-6)
    found = reference(f"{OPERATOR}sgd_")(param, torch.tensor(0.125), grad, master, True)
    assert master.tolist() == [1 - 2.0**-9] * 3
    assert found.tolist() == [1.0] * 3 and found.dtype == torch.bfloat16


def test_lists_of_parameters_move_one_by_one():
    values, grads = [drawn(3), drawn(4)], [drawn(3, seed=1), drawn(4, seed=2)]
    velocities = [torch.zeros_like(value) for value in values]
    merged, single = reference(f"{OPERATOR}merged_momentum_"), reference(f"{OPERATOR}momentum_")
    rest = 0.9, False, [], [], False, 1.0
    found = merged(values, grads, [v.clone() for v in velocities], [RATE, RATE], None, *rest)
    alone = (0.9, False, "", 0.0, False, 1.0)
    for part, value, grad, velocity in zip(found, values, grads, velocities, strict=True):
        near(part, single(value, grad, velocity, RATE, None, *alone))


# -- derivatives --


def test_derivatives_are_the_limit_of_differences():
    x, y, upstream, by = drawn(3, 4), drawn(4, 2, seed=1), drawn(3, 2, seed=2), 1e-6
    of_x, of_y = reference(f"{OPERATOR}matmul_grad")(x, y, upstream, False, False)
    for place, found in ((0, of_x), (1, of_y)):
        moved = [x.clone(), y.clone()]
        moved[place][1, 1] += by
        change = (((moved[0] @ moved[1]) - x @ y) * upstream).sum() / by
        assert math.isclose(change, found[1, 1], rel_tol=1e-5)
    x, upstream = drawn(2, 6), drawn(2, 3, seed=1)
    (found, absent), swiglu = (
        reference(f"{OPERATOR}swiglu_grad")(x, None, upstream),
        lambda x: (x[:, :3] * torch.sigmoid(x[:, :3]) * x[:, 3:]),
    )
    moved = x.clone()
    moved[1, 4] += by
    assert math.isclose(((swiglu(moved) - swiglu(x)) * upstream).sum() / by, found[1, 4], rel_tol=1e-5)
    assert absent is None


def test_weight_gradients_add_up_in_float32():
    x, upstream = drawn(8, 3, dtype=torch.bfloat16), drawn(8, 2, seed=1, dtype=torch.bfloat16)
    before = drawn(3, 2, seed=2, dtype=torch.float32)
    add = reference(f"{OPERATOR}fused_linear_param_grad_add")
    weight, bias = add(x, upstream, before, None, True, True)
    near(weight.double(), before.double() + x.double().T @ upstream.double(), 1e-6)
    near(bias.double(), upstream.double().sum(0), 1e-6)
    assert weight.dtype == bias.dtype == torch.float32


def test_weighted_swiglu_backward():
    x = drawn(4, 6).requires_grad_()
    prob, upstream = torch.rand(4, 1, dtype=torch.float64).requires_grad_(), drawn(4, 3, seed=1)
    product = torch.nn.functional.silu(x[:, :3]) * x[:, 3:] * prob
    of_x, of_prob = torch.autograd.grad(product, (x, prob), upstream)
    found = reference(f"{FUSED}fused_swiglu_weighted_bwd")(x.detach(), upstream, prob.detach())
    for part, wanted in zip(found, (of_x, of_prob, product.detach()), strict=True):
        near(part, wanted)


def test_gradient_of_cross_entropy():
    logits, label = drawn(4, 5).requires_grad_(), torch.tensor([[1], [0], [4], [-100]])
    loss = torch.nn.functional.cross_entropy(logits, label[:, 0], reduction="none")
    upstream = drawn(4, seed=1)
    (wanted,) = torch.autograd.grad(loss, logits, upstream)
    backward = reference(f"{FUSED}cross_entropy_with_softmax_bwd_w_downcast")
    found = backward(label, torch.softmax(logits.detach(), 1), upstream[:, None])
    assert found.dtype == torch.bfloat16
    near(found.double(), wanted, 2.0**-8)


def test_embedding_gradient_adds_rows_twice():
    found = reference(f"{FUSED}embedding_grad_add_to_")(
        torch.tensor([2, 0, 2]), torch.zeros(3, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]])
    )
    assert found.tolist() == [[3.0, 4.0], [0.0, 0.0], [11.0, 22.0]]


CUSTOM = f"{OPERATOR}_run_custom_op."


def test_clamped_swiglu_by_hand():
    """The first half is clipped from above only: silu(10) * 10 and silu(-20) * -10, halved."""
    clamp = reference(f"{CUSTOM}fused_swiglu_scale_clamp")
    x = torch.tensor([[20.0, -20.0, 30.0, -30.0]], dtype=torch.float64)
    found = clamp(x, torch.tensor([0.5], dtype=torch.float64), 10.0)
    near(found[0, 0].item(), 10 / (1 + math.exp(-10)) * 10 / 2)
    near(found[0, 1].item(), -20 / (1 + math.exp(20)) * -10 / 2)


def test_clamped_swiglu_backward_is_its_derivative():
    forward = reference(f"{CUSTOM}fused_swiglu_scale_clamp")
    backward = reference(f"{CUSTOM}fused_swiglu_scale_clamp_bwd")
    x, upstream, by = drawn(3, 8) * 8, drawn(3, 4, seed=1), 1e-6
    scale = torch.rand(3, 1, dtype=torch.float64)
    of_x, of_scale = backward(x, scale, upstream, 10.0)
    before = (forward(x, scale, 10.0) * upstream).sum()
    moved = x.clone()
    moved[1, 2] += by
    after = (forward(moved, scale, 10.0) * upstream).sum()
    assert math.isclose((after - before) / by, of_x[1, 2], rel_tol=1e-4, abs_tol=1e-6)
    wider = scale.clone()
    wider[2] += by
    after = (forward(x, wider, 10.0) * upstream).sum()
    assert math.isclose((after - before) / by, of_scale[2, 0], rel_tol=1e-4, abs_tol=1e-6)


# -- float8: half a step of its three bits of mantissa, or of its smallest number --


def within_half_a_step(x, values, scale, rows=1):
    whole = scale.repeat_interleave(rows, 0).repeat_interleave(128, 1)[: x.shape[0], : x.shape[1]]
    x, back = x.double(), values.double() * whole.double()
    allowed = torch.maximum(x.abs() * 2.0**-4, whole.double() * 2.0**-10) * (1 + 1e-6)
    assert bool(((back - x).abs() <= allowed).all())


def matrix(*shape, seed=0):
    x = drawn(*shape, seed=seed, dtype=torch.bfloat16) * 7
    x[..., 3] = 0
    return x


def test_quantised_blocks_are_the_numbers_within_half_a_step():
    quant = reference(f"{FUSED}fp8_quant_blockwise")
    x = matrix(256, 384)
    for power in (False, True):
        options = {"using_pow2_scale": power, "output_scale_transpose": False}
        values, scale = quant(x, **options)
        assert values.shape == (256, 384) and scale.shape == (256, 3) and scale.dtype == torch.float32
        within_half_a_step(x, values, scale)
        values, scale = quant(x, quant_method="128x128", **options)
        assert scale.shape == (2, 3)
        within_half_a_step(x, values, scale, 128)
        if power:
            assert bool((torch.frexp(scale).mantissa == 0.5).all())
        else:
            assert values.double().abs().max() == 448  # the largest number of some block


def test_transposed_blocks():
    quant = reference(f"{FUSED}fp8_quant_blockwise")
    x = matrix(256, 128)
    values, scale, turned, scale_turned = quant(x, input_transpose=True)
    assert scale.shape == (1, 256) and turned.shape == (128, 256) and scale_turned.shape == (2, 128)
    within_half_a_step(x, values, scale.T)
    within_half_a_step(x.T, turned, scale_turned.T)
    only = quant(x, input_transpose=True, return_transpose_only=True)
    assert torch.equal(only[0].view(torch.uint8), turned.view(torch.uint8))


def test_a_block_of_zeros_has_the_scale_one():
    values, scale = reference(f"{FUSED}fp8_quant_blockwise")(torch.zeros(128, 128, dtype=torch.bfloat16))
    assert bool((scale == 1).all()) and not values.double().any()


def test_dequantising_undoes_quantising():
    x = matrix(128, 256)
    values, scale = reference(f"{FUSED}fp8_quant_blockwise")(x, output_scale_transpose=False)
    found = reference(f"{FUSED}fused_act_dequant")(values, scale)
    assert found.dtype == torch.bfloat16
    assert bool(((found.double() - x.double()).abs() <= x.double().abs() * (2.0**-4 + 2.0**-8) + 1e-3).all())


def test_packed_exponents_are_powers_of_two():
    """The bytes 127, 128, 126 and 129 are 1, 2, 1/2 and 4; one byte for 128 columns."""
    packed = torch.tensor([[127 + (128 << 8) + (126 << 16)]], dtype=torch.int32)
    found = reference(f"{FUSED}fused_act_dequant")(torch.ones(1, 300).to(torch.float8_e4m3fn), packed)
    assert [found[0, column].item() for column in (0, 127, 128, 256)] == [1.0, 1.0, 2.0, 0.5]


def test_stacked_matrices():
    """The shapes are those of the documentation: one matrix of 2048 by 128."""
    quant = reference(f"{FUSED}fused_stack_transpose_quant")
    values, scale = quant([matrix(2048, 128)])
    assert values.shape == (128, 2048) and scale.shape == (1, 16)
    parts = [matrix(256, 128), matrix(256, 128, seed=1)]
    values, scale = quant(parts, transpose=False)
    within_half_a_step(torch.cat(parts), values, scale, 128)
    values, scale = quant(parts)
    within_half_a_step(torch.cat([part.T for part in parts]), values, scale, 128)


def test_columns_of_experts():
    counts = [128, 0, 256]
    x = matrix(384, 512)
    values, scales = reference(f"{FUSED}fused_transpose_split_quant")(x, None, counts, True)
    assert [part.shape for part in values] == [(512, 128), (512, 0), (512, 256)]
    assert [part.shape for part in scales] == [(1, 512), (0, 512), (2, 512)]  # (1, 512) in the documentation
    for part, scale, rows in zip(values, scales, x.split(counts), strict=True):
        within_half_a_step(rows.T, part, scale.T)
    four = matrix(4, 8, 32, 102)
    values, scales = reference(f"{FUSED}fused_transpose_wlch_split_quant")(four, [384, 128, 0, 512], True)
    flat = torch.stack([four[w, length] for length in range(8) for w in range(4)]).flatten(0, 1)
    for part, scale, rows in zip(values, scales, flat.split([384, 128, 0, 512]), strict=True):
        within_half_a_step(rows.T, part, scale.T)


def test_quantised_swiglu():
    x, prob = drawn(6, 512, dtype=torch.bfloat16), torch.rand(6, 1)
    values, scale = reference(f"{FUSED}fused_weighted_swiglu_act_quant")(x, prob)
    wide = x.double()
    wanted = wide[:, :256] / (1 + torch.exp(-wide[:, :256])) * wide[:, 256:] * prob.double()
    assert values.shape == (6, 256) and scale.shape == (6, 2)
    within_half_a_step(wanted.float(), values, scale)


def test_products_of_float8():
    a, b = matrix(128, 256), matrix(128, 256, seed=1)
    quant = reference(f"{FUSED}fp8_quant_blockwise")
    (a8, a_scale), (b8, b_scale) = quant(a), quant(b, quant_method="128x128", output_scale_transpose=False)
    found = reference(f"{FUSED}fp8_gemm_blockwise")(a8, a_scale, b8, b_scale, "float32", is_b_1d_scaled=False)
    whole_a = a8.double() * a_scale.T.double().repeat_interleave(128, 1)
    whole_b = b8.double() * b_scale.double().repeat_interleave(128, 0).repeat_interleave(128, 1)
    near(found.double(), whole_a @ whole_b.T, 1e-5)
    eighths = [torch.tensor([[1.0, 2.0], [0.5, 4.0]]).to(torch.float8_e4m3fn) for _ in "xy"]
    found = reference("paddle.linalg.fp8_fp8_half_gemm_fused")(*eighths, transpose_y=True, scale=0.5)
    assert found.tolist() == [[2.5, 4.25], [4.25, 8.125]] and found.dtype == torch.float16


# -- experts --

# The example of moe_permute's documentation.
ROUTE = torch.tensor([[-1, 0, -1, -1, 2, -1, -1, -1], [1] + [-1] * 7, [-1] * 6 + [1, -1]], dtype=torch.int32)
PROB = torch.zeros(3, 8)
PROB[0, 1], PROB[0, 4], PROB[1, 0], PROB[2, 6] = 0.6, 0.4, 1.0, 1.0


def test_permuted_tokens_come_back():
    hidden = drawn(3, 128, dtype=torch.bfloat16)
    permute, unpermute = reference(f"{NN}moe_permute"), reference(f"{NN}moe_unpermute")
    rows, places, prob, scale, experts = permute(
        hidden, None, ROUTE, PROB, 3, [1, 2, 1], 2, return_expert_indices=True
    )
    assert places.tolist() == [[0, -1, 4], [-1, 2, -1], [-1, 3, -1]]
    assert experts.tolist() == [0, -1, 1, 1, 2, -1] and scale is None
    assert torch.equal(rows[[0, 2, 3, 4]], hidden[[0, 1, 2, 0]]) and not rows[[1, 5]].any()
    torch.testing.assert_close(prob, torch.tensor([0.6, 0, 1, 1, 0.4, 0]))
    weighted = (rows.float() * prob[:, None]).to(torch.bfloat16)
    back, slots = unpermute(weighted, places, ROUTE, prob, 3, 3)
    assert torch.equal(slots, PROB)
    near(back.double(), hidden.double(), 2.0**-7)
    again, _ = unpermute(rows, places, ROUTE, prob, 3, 3, using_weighted_combine=True)
    near(again.double(), hidden.double(), 2.0**-7)


def test_scales_and_float8_tokens_move_too():
    hidden, scale = drawn(3, 128).to(torch.float8_e4m3fn), torch.tensor([[1.0], [2.0], [3.0]])
    rows, _, _, scales = reference(f"{NN}moe_permute")(hidden, scale, ROUTE, PROB, 3, [1, 2, 1], 2)
    assert scales[:, 0].tolist() == [1.0, 0.0, 2.0, 3.0, 1.0, 0.0]
    assert torch.equal(rows[2].view(torch.uint8), hidden[1].view(torch.uint8))


SCORES = torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3]])


def test_dispatch_by_hand():
    """Rows 0 and 1 choose expert 1, row 2 expert 0; the capacity of 1 drops row 1."""
    x = torch.tensor([[1.0], [2.0], [3.0]])
    y, weights, scatter, offsets, expert = reference(f"{FUSED}moe_gate_dispatch")(x, SCORES, None, 1, 1, True)
    assert y[:, 0].tolist() == [3.0, 1.0]
    torch.testing.assert_close(weights[:, 0], torch.tensor([0.9, 0.0, 0.7]))
    assert (
        scatter.tolist() == [[1, 0, 0]] and offsets.tolist() == [1, 3] and expert[:, 0].tolist() == [1, 1, 0]
    )


def test_first_choices_come_first_with_padding():
    x, dispatch = torch.tensor([[1.0], [2.0], [3.0]]), reference(f"{FUSED}moe_gate_dispatch")
    y, weights, scatter, *_ = dispatch(x, SCORES, None, 2, 3, True)
    assert y[:, 0].tolist() == [3.0, 1.0, 2.0, 1.0, 2.0, 3.0]
    assert scatter.tolist() == [[3, 4, 0], [1, 2, 5]]
    torch.testing.assert_close(weights, SCORES.sort(1, descending=True).values)
    combined = reference(f"{FUSED}moe_combine")(y, weights, scatter)
    torch.testing.assert_close(combined, x)  # the scores of each row add up to 1


def test_a_bias_moves_choices_but_not_weights():
    x, bias = torch.ones(3, 1), torch.tensor([1.0, 0.0])
    _, weights, _, _, expert = reference(f"{FUSED}moe_gate_dispatch")(x, SCORES, bias, 1, 3, True)
    assert expert[:, 0].tolist() == [0, 0, 0]
    torch.testing.assert_close(weights[:, 0], SCORES[:, 0])


def test_permuted_dispatch_is_the_dispatch_by_stages():
    x, scores = drawn(8, 3), torch.softmax(drawn(8, 4, seed=1), 1)
    plain = reference(f"{FUSED}moe_gate_dispatch")(x, scores, None, 2, 4, True)
    turned = reference(f"{FUSED}moe_gate_dispatch_permute")(x, scores, None, 2, 4, 2)
    experts = plain[0].reshape(4, 4, 3)  # rank 0 has experts 0 and 1
    assert torch.equal(turned[0], torch.stack([torch.cat(list(experts[stage::2])) for stage in (0, 1)]))


def test_balance_by_hand():
    """Four tokens spread evenly over two experts: the loss is 1."""
    loss, tokens, share = reference(f"{FUSED}cal_aux_loss")(
        torch.full((4, 2), 0.5), torch.tensor([2.0, 2.0]), None, None, 2, False, 1, 1e-6
    )
    assert loss.item() == 1.0 and tokens.item() == 4.0 and share.tolist() == [0.5, 0.5]
    uneven, _, _ = reference(f"{FUSED}cal_aux_loss")(
        torch.tensor([[1.0, 0.0]] * 4), torch.tensor([4.0, 0.0]), torch.ones(4), None, 2, True, 2, 1e-6
    )
    assert uneven.item() == 1.0  # 2 of the worst case, over k = 2


def test_ranks_and_local_experts():
    ranks, local = reference(f"{FUSED}build_src_rank_and_local_expert_id")(torch.zeros(4), [2, 0, 1, 3], 2)
    assert ranks.tolist() == [0, 0, 1, 1, 1, 1] and local.tolist() == [0, 0, 0, 1, 1, 1]


def test_experts_of_modalities():
    """3 experts for each of two modalities on a rank; slots of a group count from 0."""
    ids = torch.tensor([[0, 3], [3, 1]])
    found = reference(f"{FUSED}expand_modality_expert_id")(ids, 3, 4, 1, True)
    # 0, 3 + 4, 3 and 1 + 4 are on the ranks 0, 2, 1 and 1, and the rest of three is 0, 1, 0 and 2.
    assert found.tolist() == [[0 + 0 + 3, 12 + 1 + 3], [6 + 0 + 3, 6 + 2 + 3]]


# -- attention over sequences that follow one another --


def attended(query, key, value, causal, scale):
    found = torch.nn.functional.scaled_dot_product_attention(
        *(each.transpose(0, 1)[None] for each in (query, key, value)),
        is_causal=causal, scale=scale, enable_gqa=True,
    )  # fmt: skip
    return found[0].transpose(0, 1)


def test_packed_attention():
    qkv = drawn(2, 7, 4, 3, 8)  # two groups of queries for three heads of keys
    for causal in (False, True):
        found, _ = reference(f"{NN}flash_attn_qkvpacked")(qkv, causal=causal)
        for batch in range(2):
            query, key, value = qkv[batch, :, :2].flatten(1, 2), qkv[batch, :, 2], qkv[batch, :, 3]
            assert found[batch].shape == (7, 6, 8)
            near(found[batch], grouped(query, key, value, causal, 8**-0.5))


def grouped(query, key, value, causal, scale):
    """Each head of keys serves as many neighbouring heads of queries."""
    times = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    return attended(query, key, value, causal, scale)


def test_sequences_do_not_see_one_another():
    qkv, borders = drawn(9, 3, 2, 4), torch.tensor([0, 4, 9], dtype=torch.int32)
    packed = reference(f"{NN}flash_attn_varlen_qkvpacked")
    plain = reference(f"{NN}flash_attention_v3_varlen")
    for causal in (False, True):
        found, _ = packed(qkv, borders, borders, 5, 5, 0.25, causal=causal)
        other, _ = plain(
            qkv[:, 0], qkv[:, 1], qkv[:, 2], borders, borders, 5, 5, softmax_scale=0.25, causal=causal
        )
        for rows in (slice(0, 4), slice(4, 9)):
            wanted = attended(qkv[rows, 0], qkv[rows, 1], qkv[rows, 2], causal, 0.25)
            near(found[rows], wanted)
            near(other[rows], wanted)


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            print(name)
