"""Multi-head attention and transformer layers. With dropout only the shape is compared, because the layers
draw too often for one distribution."""

from assay import draw_distribution
from assay.apis.normalization import layer_norm
from assay.layers import Made
from assay.reference import torch
from assay.registry import layer


def _linear(prefix, inputs, outputs, bias=True):
    shapes = {f"{prefix}.weight": (inputs, outputs)}
    return shapes | ({f"{prefix}.bias": (outputs,)} if bias else {})


def _apply(p, prefix, x):
    y = x @ p[f"{prefix}.weight"]
    bias = p.get(f"{prefix}.bias")
    return y if bias is None else y + bias


def _attention_shapes(prefix, width, key_width, value_width, bias):
    return (
        _linear(f"{prefix}q_proj", width, width, bias)
        | _linear(f"{prefix}k_proj", key_width, width, bias)
        | _linear(f"{prefix}v_proj", value_width, width, bias)
        | _linear(f"{prefix}out_proj", width, width, bias)
    )


def _attention(p, prefix, heads, query, key, value, mask):
    """The result and the weights. A bool or integer mask selects what is visible; a floating mask is
    added."""
    q, k, v = (
        _apply(p, f"{prefix}{name}_proj", x).unflatten(-1, (heads, -1)).transpose(1, 2)
        for name, x in (("q", query), ("k", key), ("v", value))
    )
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + (mask if mask.is_floating_point() else (mask.to(scores.dtype) - 1) * 1e9)
    weights = torch.softmax(scores, -1)
    return _apply(p, f"{prefix}out_proj", (weights @ v).transpose(1, 2).flatten(2)), weights


@layer(
    "paddle.nn.MultiHeadAttention",
    inputs="query key value attn_mask cache",
    grad=lambda dropout=0.0: not dropout,
)
def multi_head_attention(
    embed_dim, num_heads, dropout=0.0, kdim=None, vdim=None, need_weights=False, weight_attr=None,
    bias_attr=None,
):  # fmt: skip
    widths = kdim or embed_dim, vdim or embed_dim

    def call(p, query, key=None, value=None, attn_mask=None, cache=None):
        key = query if key is None else key
        value = query if value is None else value
        y, weights = _attention(p, "", num_heads, query, key, value, attn_mask)
        if dropout:
            return draw_distribution.anything(y.shape, y.dtype)
        return (y, weights) if need_weights else y

    return Made(call, _attention_shapes("", embed_dim, *widths, bias_attr is not False))


def _draws_nothing(dropout=0.1, attn_dropout=None, act_dropout=None):
    """Whether no dropout draws. If one does, only the shape is compared, and no gradient."""
    return not any((dropout, attn_dropout, act_dropout))


_ACTIVATIONS = {"relu": lambda x: torch.relu(x), "gelu": lambda x: torch.nn.functional.gelu(x)}


def _norm(p, name, x, epsilon):
    return layer_norm(x, x.shape[-1], p[f"{name}.weight"], p[f"{name}.bias"], epsilon)


def _block(d_model, nhead, dim_feedforward, options, attentions):
    """Attentions, then two linear layers. Each has a residual connection, and a norm before or after it."""
    activation, normalize_before, bias_attr, epsilon, draws = options
    bias = bias_attr is not False
    shapes = _linear("linear1", d_model, dim_feedforward, bias)
    shapes |= _linear("linear2", dim_feedforward, d_model, bias)
    for name in attentions:
        shapes |= _attention_shapes(f"{name}.", d_model, d_model, d_model, bias)
    norms = [f"norm{place + 1}" for place in range(len(attentions) + 1)]
    for norm in norms:
        shapes |= {f"{norm}.weight": (d_model,), f"{norm}.bias": (d_model,)}

    def call(p, x, others):
        def added(x, norm, part):
            if normalize_before:
                return x + part(_norm(p, norm, x, epsilon))
            return _norm(p, norm, x + part(x), epsilon)

        for name, norm, (other, mask) in zip(attentions, norms, others, strict=False):

            def attend(y, name=name, other=other, mask=mask):
                seen = y if other is None else other
                return _attention(p, f"{name}.", nhead, y, seen, seen, mask)[0]

            x = added(x, norm, attend)
        inner = lambda y: _apply(p, "linear2", _ACTIVATIONS[activation](_apply(p, "linear1", y)))  # noqa: E731
        x = added(x, norms[-1], inner)
        return draw_distribution.anything(x.shape, x.dtype) if draws else x

    return call, shapes


def _registered(name, inputs, attentions, call_of):
    @layer(f"paddle.nn.{name}", inputs=inputs, grad=_draws_nothing)
    def make(
        d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None, act_dropout=None,
        normalize_before=False, weight_attr=None, bias_attr=None, layer_norm_eps=1e-05,
    ):  # fmt: skip
        draws = not _draws_nothing(dropout, attn_dropout, act_dropout)
        options = activation, normalize_before, bias_attr, layer_norm_eps, draws
        block, shapes = _block(d_model, nhead, dim_feedforward, options, attentions)
        return Made(call_of(block), shapes)


_registered(
    "TransformerEncoderLayer",
    "src src_mask cache",
    ["self_attn"],
    lambda block: lambda p, src, src_mask=None: block(p, src, [(None, src_mask)]),
)
_registered(
    "TransformerDecoderLayer",
    "tgt memory tgt_mask memory_mask cache",
    ["self_attn", "cross_attn"],
    lambda block: lambda p, tgt, memory, tgt_mask=None, memory_mask=None: block(
        p, tgt, [(None, tgt_mask), (memory, memory_mask)]
    ),
)
