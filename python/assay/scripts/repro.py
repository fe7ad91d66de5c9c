"""repro.py: one case of a run again, with the inputs of the run in files beside it.

It exits with 1 as long as the fault shows, as the script of a finding does. Where there is no such script, it
prints the results.
"""

from assay.scripts.finding import FindingScript, NoScript, imports, loaded
from assay.scripts.source import LANGUAGES, Case, Lane, Language, literal, one_line
from assay.wire import Fields

SCRIPT = '''\
# Runs one case of assay again; needs only {words.full_name} and the files beside it.
{comment}
{imports}
import {words.module}

HERE = pathlib.Path(__file__).resolve().parent


def load(name, dtype, shape):
    """A tensor of the elements in a file beside this one."""
    data = bytearray((HERE / name).read_bytes())
    if not data:
        return {words.module}.empty(shape, dtype=dtype)
    return {words.read}.view(dtype).reshape(shape)

{modules}
print({case})
{words.seed}({seed})
{body}
'''
# A tensor that is both an output and an input gets no gradient if there are other outputs.
BACKWARD = """

def tensors(value):
    if isinstance(value, {words.module}.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)


outputs = [
    {words.copy}(x) if any(x is leaf for leaf in leaves) else x
    for x in tensors(result)
    if {differentiates} and (x.is_floating_point() or x.is_complex())
]
if outputs and leaves:
    # The run had an upstream gradient of random values; ones show the same faults as a rule.
    upstream = [{words.module}.ones_like(x) for x in outputs]
    print("gradients:", {words.gradients}(outputs, leaves, upstream, allow_unused=True))
"""


def repro(facts: Fields) -> str:
    """The script. Tensor i is read from the file xi.bin."""
    case = Case(facts.case)
    words = LANGUAGES.get(case.module, LANGUAGES["paddle"])
    lane = Lane(facts)
    try:
        body = FindingScript(facts, lane, files=True).lines()
    except NoScript as reason:
        why = f"# It prints the results alone: {reason}."
        if facts.fault["values"] == "layout":
            why += " The inputs are in row-major order; in the run they were transposed, strided or offset."
        body = [why, *_inputs(case, words), "", *case.lines()]
        body.append('print("result:", result)')
        if facts.backward:
            body.append(BACKWARD.format(words=words, differentiates=words.differentiates.format("x")))
    text = "\n".join([*lane.kernel, *body]).rstrip()
    return SCRIPT.format(
        words=words,
        imports=imports("pathlib." + text),
        comment="".join(f"# {one_line(line)}\n" for line in facts.comment),
        modules="".join(f"import {module}\n" for module in lane.modules),
        case=literal(facts.case, lambda value: None),
        seed=facts.seed,
        body=text,
    )


def _inputs(case: Case, words: Language) -> list[str]:
    leaves, lines = case.leaves(), []
    for spec in case.tensors:
        name = f"x{spec.index}"
        lines.append(f"{name} = {loaded(words, name, spec)}")
        lines += [name + words.leaf] * (name in leaves)
    return [*lines, f"leaves = [{', '.join(leaves)}]", *case.copies(words)]
