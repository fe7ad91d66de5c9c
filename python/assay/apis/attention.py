"""Scaled dot-product attention."""

from assay import draw_distribution
from assay.arguments import widened
from assay.reference import common_shape, torch
from assay.registry import api


@api("paddle.nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, training=True, backend=None,
    scale=None, enable_gqa=True, name=None,
):  # fmt: skip
    """The layout is batch, sequence, head, width. With is_causal any other mask is ignored."""
    if query.ndim == 3:
        batch = (each.unsqueeze(0) for each in (query, key, value))
        options = attn_mask, dropout_p, is_causal, training, backend, scale, enable_gqa
        return scaled_dot_product_attention(*batch, *options).squeeze(0)
    heads = query.shape[2], key.shape[2], value.shape[2]
    groups = heads[0] // max(1, heads[1])
    if heads[1] != heads[2] or heads[0] != groups * heads[1] or not (enable_gqa or groups == 1):
        raise ValueError(f"query, key and value have incompatible numbers of heads: {heads}")
    q, k, v = (widened(each).transpose(1, 2) for each in (query, key, value))
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    if is_causal:
        attn_mask = None
    if attn_mask is not None:
        common_shape(
            attn_mask.shape, (*q.shape[:3], k.shape[2])
        )  # checked before the scores are computed, which may be large
    elif not v.shape[3] and k.shape[2] == v.shape[2]:
        k, v = k[:, :, :0], v[:, :, :0]  # skips the weights, which take seconds for long sequences
    scores = q @ k.transpose(2, 3) * (scale or max(1, query.shape[-1]) ** -0.5)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    elif attn_mask is not None:
        masked = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if masked else scores + attn_mask
    result = (torch.softmax(scores, -1) @ v).transpose(1, 2).to(query.dtype)
    if dropout_p and training:
        return draw_distribution.anything(result.shape, result.dtype)
    return result
