"""Fused attention of paddle.incubate, and attention under sparse masks."""

from assay import draw_distribution
from assay.apis.fused import absent, quantized
from assay.arguments import widened
from assay.known_deviation import avoids, follows
from assay.reference import torch
from assay.registry import api
from assay.rules import Literal, constant, distinct, integers, uniform
from assay.shorthand import INFERENCE_ONLY


def _attended(query, key, value, scale, hidden=None, mask=None):
    """Attention over [..., head, position, width]. Keys and values may have fewer heads. A query that sees
    nothing gives 0."""
    groups = query.shape[-3] // max(1, key.shape[-3])
    key, value = (widened(each).repeat_interleave(groups, -3) for each in (key, value))
    scores = widened(query) @ key.transpose(-1, -2) * scale
    scores = scores if mask is None else scores + mask
    scores = scores if hidden is None else scores.masked_fill(hidden, -torch.inf)
    weights = torch.softmax(scores, -1)
    weights = weights if hidden is None else weights.masked_fill(hidden, 0)
    return (weights @ value).to(query.dtype)


def _later(rows, columns):
    """The causal mask: True where a query must not look."""
    return torch.ones(rows, columns, dtype=torch.bool).triu(1)


def _turned(x, sin, cos, in_pairs):
    """x rotated in the planes of neighbouring elements, or of corresponding elements of both halves."""
    if in_pairs:
        ahead = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    else:
        half = x.shape[-1] // 2
        ahead = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + ahead * sin


@api(
    "paddle.incubate.nn.functional.fused_rotary_position_embedding",
    sin=uniform(-1, 1),
    cos=uniform(-1, 1),
    position_ids=integers(0, lambda sin: sin.shape[1] if sin.ndim == 4 else sin.shape[0]),
    known_deviation=follows("no gradient with respect to `sin` and `cos`"),
)
def fused_rotary_position_embedding(
    q, k=None, v=None, sin=None, cos=None, position_ids=None, use_neox_rotary_style=True, time_major=False,
    rotary_emb_base=10000.0,
):  # fmt: skip
    """What Paddle calls the neox style rotates neighbouring elements."""
    length, width = q.shape[0 if time_major else 1], q.shape[3]
    if any(each is not None and each.shape[:2] != q.shape[:2] for each in (k, v)):
        raise ValueError("q, k and v must have the same batch and length")
    if sin is None or cos is None:
        if position_ids is not None or not use_neox_rotary_style:
            raise ValueError("position_ids and use_neox_rotary_style=False require sin and cos")
        speed = rotary_emb_base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angle = (torch.arange(length)[:, None] * speed).repeat_interleave(2, 1)
        sin, cos = angle.sin(), angle.cos()
    if sin.shape != cos.shape or sin.shape[-1] != width or (sin.ndim == 4 and sin.shape[::2] != (1, 1)):
        raise ValueError(f"sin {tuple(sin.shape)} and cos {tuple(cos.shape)} do not match q {tuple(q.shape)}")
    sin, cos = (table.detach().reshape(-1, width) for table in (sin, cos))
    if position_ids is None and len(sin) != length or len(sin) < length:
        raise ValueError(f"sin and cos have {len(sin)} positions, but q has {length}")
    places = torch.arange(length)[None] if position_ids is None else position_ids
    sin, cos = (widened(table)[places][:, :, None] for table in (sin, cos))  # [batch, position, 1, width]
    if time_major:
        sin, cos = sin.transpose(0, 1), cos.transpose(0, 1)
    return tuple(
        absent() if each is None else _turned(widened(each), sin, cos, use_neox_rotary_style).to(each.dtype)
        for each in (q, k, v)
    )


@api(
    "paddle.incubate.nn.functional.variable_length_memory_efficient_attention",
    seq_lens=constant(lambda query: query.shape[2]),
    kv_seq_lens=constant(lambda key: key.shape[2]),
    grad=INFERENCE_ONLY,
)
def variable_length_memory_efficient_attention(
    query, key, value, seq_lens, kv_seq_lens, mask=None, scale=None, causal=False, pre_cache_length=0
):
    """The mask may be larger than the scores. All sequences have full length, because results beyond the
    length are undefined."""
    rows, columns = query.shape[2], key.shape[2]
    if mask is not None and (mask.shape[:2] != (len(query), 1) or len(key) != len(query)):
        raise ValueError(f"mask {tuple(mask.shape)} does not match query {tuple(query.shape)}")
    hidden = torch.arange(columns) >= kv_seq_lens.reshape(-1, 1, 1, 1)
    hidden = hidden | _later(rows, columns) if causal else hidden.expand(-1, 1, rows, columns)
    mask = None if mask is None else mask[:, :, :rows, :columns]
    return _attended(query, key, value, scale or query.shape[3] ** -0.5, hidden, mask)


def _starts(key, causal=False, *, this):
    """Each column hides some rows far from its own, so that every row sees itself."""
    length, kinds = this.shape[2:]
    if this.size > 400_000:
        return constant(length)
    far, farther = length // 4 + 1, length // 2 + 1
    columns = [
        {
            1: (min(length, j + far),),
            2: (min(length, j + far), min(length, j + farther) if causal else max(0, j - far)),
            4: (min(length, j + far), min(length, j + farther), max(0, j - farther), max(0, j - far)),
        }[kinds]
        for j in range(length)
    ]
    return Literal([value for column in columns for value in column] * (this.shape[0] * this.shape[1]))


@api("paddle.nn.functional.flashmask_attention", startend_row_indices=_starts)
def flashmask_attention(
    query, key, value, startend_row_indices=None, *, dropout=0.0, causal=False, window_size=None,
    return_softmax_lse=False, return_seed_offset=False, fixed_seed_offset=None, rng_name="", training=True,
    name=None, softmax_scale=None, block_mask=None,
):  # fmt: skip
    """A column hides the rows from a start to an end below the diagonal, and likewise above it."""
    if window_size is not None or return_softmax_lse or return_seed_offset or block_mask is not None:
        raise NotImplementedError("the reference has no windows, block masks or further results")
    if dropout and training:
        return draw_distribution.anything(query.shape, query.dtype)
    rows, columns = query.shape[1], key.shape[1]
    hidden = _later(rows, columns) if causal else torch.zeros(rows, columns, dtype=torch.bool)
    if startend_row_indices is not None:
        row, below = torch.arange(rows)[:, None], ~_later(rows, columns)
        starts = startend_row_indices.long().movedim(3, 0)[:, :, :, None]  # [kind, batch, head, 1, column]
        starts = starts.repeat_interleave(query.shape[2] // starts.shape[2], 2)
        kinds = len(starts)
        lower = row >= starts[0]
        lower = lower & (row < starts[1]) if kinds == 4 or (kinds == 2 and causal) else lower
        hidden = hidden | (lower & below)
        if not causal:
            upper = row < starts[-1]
            hidden = hidden | ((upper & (row >= starts[2]) if kinds == 4 else upper) & ~below)
    query, key, value = (each.transpose(1, 2) for each in (query, key, value))
    return _attended(query, key, value, softmax_scale or query.shape[3] ** -0.5, hidden).transpose(1, 2)


def _packed(qkv):
    """Query, key and value from [..., groups + 2, kv heads, width]: all heads of the queries, then one key
    and one value for each kv head."""
    query = qkv[..., :-2, :, :].flatten(-3, -2)
    return query, qkv[..., -2, :, :], qkv[..., -1, :, :]


def _sequences(query, key, value, borders_q, borders_k, scale, causal):
    """Attention within each of several sequences, whose tokens follow one another: [token, head, width]."""
    found = torch.zeros_like(query)
    for begin, end, first, last in zip(
        *(
            borders.tolist()[part]
            for borders in (borders_q, borders_k)
            for part in (slice(-1), slice(1, None))
        ),
        strict=True,
    ):
        parts = (each.transpose(0, 1) for each in (query[begin:end], key[first:last], value[first:last]))
        rows, columns = end - begin, last - first
        hidden = torch.ones(rows, columns, dtype=torch.bool).triu(1 + columns - rows) if causal else None
        found[begin:end] = _attended(*parts, scale, hidden).transpose(0, 1)
    return found


def _equal_lengths(tokens, this):
    """The borders of sequences of about equal length."""
    return Literal([tokens * row // (this.size - 1) for row in range(this.size)])


@api("paddle.nn.functional.flash_attn_qkvpacked")
def flash_attn_qkvpacked(
    qkv, dropout=0.0, causal=False, return_softmax=False, *, fixed_seed_offset=None, rng_name="",
    training=True, name=None,
):  # fmt: skip
    if return_softmax:
        raise NotImplementedError("the reference does not return the softmax")
    query, key, value = (each.transpose(1, 2) for each in _packed(qkv))
    rows = query.shape[2]
    found = _attended(query, key, value, query.shape[3] ** -0.5, _later(rows, rows) if causal else None)
    found = found.transpose(1, 2)
    return draw_distribution.anything(found.shape, found.dtype) if dropout and training else found, None


@api(
    "paddle.nn.functional.flash_attn_varlen_qkvpacked",
    cu_seqlens_q=lambda qkv, this: _equal_lengths(qkv.shape[0], this),
    cu_seqlens_k=lambda qkv, this: _equal_lengths(qkv.shape[0], this),
)
def flash_attn_varlen_qkvpacked(
    qkv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, dropout=0.0, causal=False,
    return_softmax=False, fixed_seed_offset=None, rng_name="", varlen_padded=True, training=True, name=None,
):  # fmt: skip
    if return_softmax:
        raise NotImplementedError("the reference does not return the softmax")
    found = _sequences(*_packed(qkv), cu_seqlens_q, cu_seqlens_k, scale, causal)
    return draw_distribution.anything(found.shape, found.dtype) if dropout and training else found, None


@api(
    "paddle.nn.functional.flash_attention_v3_varlen",
    cu_seqlens_q=lambda query, this: _equal_lengths(query.shape[0], this),
    cu_seqlens_k=lambda key, this: _equal_lengths(key.shape[0], this),
    ignores=dict.fromkeys(
        ("seqused_q", "seqused_k", "qv", "q_descale", "k_descale", "v_descale", "window_size", "softcap"),
        "it attends to whole sequences without scales",
    ),
)
def flash_attention_v3_varlen(
    query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q=None, seqused_k=None,
    softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
    window_size=(-1, -1), softcap=0.0, num_splits=1, pack_gqa=None, sm_margin=0,
):  # fmt: skip
    """Of the second result, log-sums of the scores, only shape and dtype are compared."""
    scale = softmax_scale or query.shape[-1] ** -0.5
    found = _sequences(query, key, value, cu_seqlens_q, cu_seqlens_k, scale, causal)
    return found, draw_distribution.anything((query.shape[1], len(query)), torch.float32)


def _columns(sparse_csr_offset, this):
    """The same number of columns in every row, starting at the row's own, cyclically."""
    rows = sparse_csr_offset.shape[-1] - 1
    each = this.shape[-1] // max(1, rows)
    if this.size > 400_000:
        return integers(0, rows)
    columns = [column for row in range(rows) for column in sorted((row + i) % rows for i in range(each))]
    return Literal(columns * (this.size // max(1, len(columns))))


@api(
    "paddle.nn.functional.sparse_attention",
    sparse_csr_offset=lambda sparse_csr_columns, this: Literal(
        [row * (sparse_csr_columns.shape[-1] // (this.shape[-1] - 1)) for row in range(this.shape[-1])]
        * (this.size // this.shape[-1])
    ),
    sparse_csr_columns=_columns,
    key_padding_mask=constant(1),
    attn_mask=constant(1),
)
def sparse_attention(
    query, key, value, sparse_csr_offset, sparse_csr_columns, key_padding_mask=None, attn_mask=None, name=None
):
    """Only positions of the layout are visible, if the masks are not 0 there."""
    length = query.shape[2]
    counts = sparse_csr_offset.long().diff(dim=-1)
    seen = torch.zeros(*query.shape[:3], length, dtype=torch.bool)
    for batch in range(query.shape[0]):
        for head in range(query.shape[1]):
            row = torch.repeat_interleave(torch.arange(length), counts[batch, head])
            seen[batch, head, row, sparse_csr_columns[batch, head, : len(row)].long()] = True
    if key_padding_mask is not None:
        seen = seen & (key_padding_mask != 0)[:, None, None]
    if attn_mask is not None:
        seen = seen & (attn_mask != 0)
    return _attended(query, key, value, query.shape[3] ** -0.5, ~seen)


UNTURNED = avoids("rotation angles are 0; which elements the kernel rotates together is undocumented")


def _no_turn(this):
    """Cosines of 1 and sines of 0."""
    half = this.size // 2
    return Literal([1] * half + [0] * half) if this.size <= 400_000 else constant(0)


_WHOLE = {  # integers, dequantised by a scale for each column
    "qkv_out_scale": uniform(-0.05, 0.05)
}


def _heads_of(qkv, width, kv_heads):
    """Query, key and value from one row of elements."""
    heads = qkv.shape[-1] // width - 2 * kv_heads
    return qkv.unflatten(-1, (-1, width)).split((heads, kv_heads, kv_heads), -2)


def _prepared(qkv, scale, bias, dtype):
    qkv = widened(qkv) if scale is None else qkv * scale.reshape(-1)
    return (qkv if bias is None else qkv + bias.reshape(-1)).to(dtype)


def _finished(result, shift, smooth, out_scale):
    if shift is not None:
        result = (result + shift) * smooth
    return quantized(result) if out_scale > 0 else result


def _steps(cache_kv, src_mask):
    """The number of visible decoding steps, from the mask or the size of the cache."""
    return cache_kv.shape[3] if src_mask is None else src_mask.shape[-1]


@api(
    "paddle.incubate.nn.functional.masked_multihead_attention",
    x=lambda this: integers(2, 10) if this.dtype == "int32" else None,
    sequence_lengths=constant(lambda cache_kv, src_mask=None: _steps(cache_kv, src_mask) - 1),
    rotary_tensor=_no_turn,
    grad=INFERENCE_ONLY,
    known_deviation=UNTURNED,
    **_WHOLE,
)
def masked_multihead_attention(
    x, cache_kv=None, bias=None, src_mask=None, cum_offsets=None, sequence_lengths=None, rotary_tensor=None,
    beam_cache_offset=None, qkv_out_scale=None, out_shift=None, out_smooth=None, seq_len=1, rotary_emb_dims=0,
    use_neox_rotary_style=False, compute_dtype="default", out_scale=-1, quant_round_type=1,
    quant_max_bound=127.0, quant_min_bound=-127.0,
):  # fmt: skip
    """One decoding step: key and value are stored in the cache after those of earlier steps."""
    if beam_cache_offset is not None:
        raise NotImplementedError("the reference has no beam search")
    _, batch, kv_heads, _, width = cache_kv.shape
    seen = _steps(cache_kv, src_mask)
    qkv = _prepared(x.reshape(batch, -1), qkv_out_scale, bias, cache_kv.dtype)
    query, key, value = _heads_of(qkv, width, kv_heads)
    at = torch.full((batch,), seen - 1) if sequence_lengths is None else sequence_lengths.long().flatten()
    cache = cache_kv.clone()
    cache[:, torch.arange(batch), :, at] = torch.stack((key, value), 1)
    hidden = (torch.arange(seen) > at[:, None])[:, None, None]
    result = _attended(
        query[:, :, None], cache[0, :, :, :seen], cache[1, :, :, :seen], width**-0.5, hidden, src_mask
    )
    return _finished(result.reshape(batch, -1), out_shift, out_smooth, out_scale), cache


# A decoding step has one token for each sequence. Otherwise all tokens of sequences of equal length are
# given.
def _encoded(qkv, block_tables):
    length = qkv.shape[0] // block_tables.shape[0]
    return 0 if length == 1 else length


def _decoded(qkv, block_tables, block_size=64):
    return 0 if _encoded(qkv, block_tables) else block_size


def _borders(qkv, this):
    length = qkv.shape[0] // (this.size - 1)
    return Literal([row * length for row in range(this.size)])


@api(
    "paddle.incubate.nn.functional.block_multihead_attention",
    qkv=lambda this: integers(2, 10) if this.dtype == "int32" else None,
    seq_lens_encoder=constant(_encoded),
    seq_lens_decoder=constant(_decoded),
    seq_lens_this_time=constant(lambda qkv, block_tables: qkv.shape[0] // block_tables.shape[0]),
    padding_offsets=constant(0),
    cum_offsets=constant(0),
    cu_seqlens_q=_borders,
    cu_seqlens_k=_borders,
    block_tables=lambda this: distinct(0, this.size),
    max_enc_len_this_time=constant(_encoded),
    max_dec_len_this_time=constant(_decoded),
    rope_emb=_no_turn,
    grad=INFERENCE_ONLY,
    known_deviation=UNTURNED,
    **_WHOLE,
)
def block_multihead_attention(
    qkv, key_cache, value_cache, seq_lens_encoder, seq_lens_decoder, seq_lens_this_time, padding_offsets,
    cum_offsets, cu_seqlens_q, cu_seqlens_k, block_tables, pre_key_cache=None, pre_value_cache=None,
    cache_k_quant_scales=None, cache_v_quant_scales=None, cache_k_dequant_scales=None,
    cache_v_dequant_scales=None, qkv_out_scale=None, qkv_bias=None, out_shift=None, out_smooth=None,
    max_enc_len_this_time=None, max_dec_len_this_time=None, rope_emb=None, mask=None, tgt_mask=None,
    max_seq_len=-1, block_size=64, use_neox_style=False, use_dynamic_cachekv_quant=False, quant_round_type=1,
    quant_max_bound=127.0, quant_min_bound=-127.0, out_scale=-1, compute_dtype="default", rope_theta=10000.0,
):  # fmt: skip
    """Keys and values are stored in blocks that a table names. For byte caches, prefix caches and the
    returned qkv only shape and dtype are compared."""
    batch, (_, kv_heads, _, width) = len(block_tables), key_cache.shape
    dtype = torch.float16 if qkv.dtype == torch.int32 else qkv.dtype
    query, key, value = (
        each.unflatten(0, (batch, -1)).transpose(1, 2)
        for each in _heads_of(_prepared(qkv, qkv_out_scale, qkv_bias, dtype), width, kv_heads)
    )
    shape = len(qkv), query.shape[1] * width
    handed_back = draw_distribution.anything(qkv.shape, qkv.dtype)
    if key_cache.dtype == torch.uint8 or pre_key_cache is not None:
        result = (
            quantized(qkv.new_empty(shape)) if out_scale > 0 else draw_distribution.anything(shape, dtype)
        )
        return result, handed_back, *(draw_distribution.anything(key_cache.shape, key_cache.dtype),) * 2
    count = query.shape[2]
    before = int(seq_lens_decoder[0]) if count == 1 else 0
    table = block_tables.long()
    place = torch.arange(before, before + count)
    caches, whole = [], []
    for cache, new in ((key_cache, key), (value_cache, value)):
        cache = cache.clone()
        cache[table[:, place // block_size], :, place % block_size] = new.transpose(1, 2)
        caches.append(cache)
        whole.append(cache[table].movedim(2, 1).flatten(2, 3)[:, :, : before + count])
    if count > 1:
        hidden, added = (_later(count, count), None) if mask is None else (None, mask[..., :count, :count])
    else:
        hidden, added = None, None if tgt_mask is None else tgt_mask[..., : before + 1]
    result = _attended(query, *whole, width**-0.5, hidden, added).transpose(1, 2).reshape(shape)
    return _finished(result, out_shift, out_smooth, out_scale), handed_back, *caches
