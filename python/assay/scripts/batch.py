"""The script of a call whose results depend on the batch (assay.execution.require): a part, and the whole."""

import re

from assay.scripts.source import Case
from assay.wire import DIFFERENTIABLE

_ARGUMENT = r"x(?P<x>\d+)(?P<same>\[(?:\.\.\., |:, )?\d+:\d+(?:, :)?\]|\.roll\(\d+, \d\))"
_LONGER = r"torch\.cat\(\[x(?P<y>\d+)\] \* \d+\)\[:\d+\]"
PART = re.compile(f"{_ARGUMENT}|{_LONGER}")
LINE = re.compile(r"the (result|gradient) for (.+?) (?:differs|is another)")
SCRIPT = """\
def call({names}, **how):
{body}


got = call({parts})
expected = call({names}{whole})
differ = total = 0
for a, b in zip(got, expected, strict=True):
    a, b = a{back}, b{kept}
    differ += int(((a != b) & ((a == a) | (b == b))).sum())
    total += b.numel()
print(differ, "of", total, "elements differ")
sys.exit(differ > 0)"""
GRADIENT = """\
    leaves = [x.detach().requires_grad_() for x in ({cut},)]
    ({cut},) = leaves
    result = {call}
    return torch.autograd.grad(result, leaves, torch.full_like(result, 0.5))"""
RESULT = """\
    result = {call}
    return result if isinstance(result, (list, tuple)) else [result]"""


def random_inputs(case: Case) -> list[str]:
    """The lines that make inputs of any size; integers are zeros."""
    lines = ["torch.manual_seed(0)"]
    for spec in case.tensors:
        made = f"torch.zeros({list(spec.shape)}, dtype=torch.{spec.dtype})"
        if spec.dtype in DIFFERENTIABLE:
            made = f"torch.randn({list(spec.shape)}).to(torch.{spec.dtype})"
        lines.append(f"x{spec.index} = {made}")
    return lines


def batch_lines(case: Case, message: str) -> list[str]:
    """The lines behind the inputs; none if the message does not name a part."""
    line = LINE.search(message)
    parts = list(PART.finditer(line[2])) if line else []
    if line is None or not parts or ", ".join(part[0] for part in parts) != line[2]:
        return []
    shapes = {f"x{spec.index}": spec.shape for spec in case.tensors}
    given = {f"x{part['x'] or part['y']}": part for part in parts}
    if not given.keys() <= shapes.keys():
        return []
    first = parts[0]
    longer = first["y"] is not None
    call, whole, how = case.call(), "", ""
    if first[0].endswith(", :]"):  # attention: a part of the query has another mask
        call, whole = call.replace("is_causal=True", "**how"), ", is_causal=True"
        start, end = map(int, re.findall(r"(\d+):(\d+)", first[0])[0])
        if end - start > 1:
            how = f", attn_mask=torch.ones({end - start}, {end}, dtype=torch.bool).tril({start})"
    names = list(shapes)
    cut = names[:1] if whole else list(given)
    body = GRADIENT if line[1] == "gradient" else RESULT
    return SCRIPT.format(
        names=", ".join(names),
        body=body.format(cut=", ".join(cut), call=call),
        parts=", ".join(given[name][0] if name in given else name for name in names) + how,
        whole=whole,
        back=f"[:{shapes[cut[0]][0]}]" if longer else "",
        kept="" if longer else first["same"],
    ).split("\n")
