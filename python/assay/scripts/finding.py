"""The script of a finding: the call with its inputs as literals, in Python that needs the framework alone.

It prints what came and what is right, and exits with 1 as long as they differ.
"""

import re
from math import isfinite
from textwrap import indent

from assay.scripts.batch import batch_lines, random_inputs
from assay.scripts.source import LANGUAGES, Case, Lane, Language
from assay.scripts.tracing import TracedCall, traced
from assay.spec import INTEGER, TensorSpec, layout_of
from assay.wire import DIFFERENTIABLE, Fields

MOST_LINES = 30
REQUIRE = "require="  # the execution that compares parts of a batch
OPTIMIZERS = ("paddle.optimizer.", "torch.optim.")
PATH = re.compile(r"(\[\d+\]|\.[^\W\d]\w*)*")  # of a part of a result

PROCESS = """\
process = multiprocessing.get_context("fork").Process(target=call)
process.start()
process.join(60)
print("got      exit code", process.exitcode)
print("expected exit code 0 or 1: a result or an exception")
process.kill()
sys.exit(process.exitcode not in (0, 1))"""
CAUGHT = """\
except Exception as error:
    print(f"got      {type(error).__name__}: {error}")
    print("expected a result")
    sys.exit(1)
print("got      a result")"""
CHANGED = """\
changed = [i for i, x in enumerate(tensors) if str(x.tolist()) != before[i]]
print("got      changed inputs", changed)
print("expected changed inputs []")
sys.exit(bool(changed))"""
COMPARED = """\
got = {got}
expected = {expected}
print("got     ", got)
print("expected", expected)
sys.exit({wrong})"""


# Its parameters are not those of the run, so the same layer in float64 says what is right.
LAYER = """\
{seed}(0)
layer = {layer}


def call(layer, {names}):
    parameters = [each for _, each in sorted(layer.named_parameters())]
{body}
    return {got}.item()


def wide(x):
    return {wide} if x.is_floating_point() else x


got = call(layer, {names})
expected = call({wide_layer}, {wide_names})
print("got     ", got)
print("expected", expected)
sys.exit({wrong})"""


class NoScript(Exception):
    """Why there is no such script."""


class FindingScript:
    """The script, written from the facts of src/report/issue.cc. With `files`, it loads its inputs, of which
    there may then be any number."""

    def __init__(self, facts: Fields, lane: Lane, files: bool = False) -> None:
        self.files = files
        self.facts, self.lane, self.fault, self.shown = facts, lane, facts.fault, facts.shown
        if lane.framework not in LANGUAGES:
            raise NoScript(f"assay writes no scripts for {lane.framework}")
        self.words = LANGUAGES[lane.framework]
        self.case = Case(facts.case)
        self.foreign = self.case.module != self.words.module  # the lane called a function of the tables
        self.differentiates = self.fault.gradient or self.fault.phase == "backward"
        self.leaves = self.case.leaves()
        if self.case.in_place:
            self.leaves = [f"leaves[{i}]" for i in range(len(self.leaves))]

    def text(self) -> str:
        """The script. Raises NoScript if there is none."""
        text = "\n".join([*self.lane.kernel, *self.lines()])
        head = f"{imports(text)}\nimport {self.words.module}  # {self.lane.build}\n"
        head += "".join(f"import {name}  # as the lane of assay.toml does\n" for name in self.lane.modules)
        text = f"{head}\n{text}\n"
        if text.count("\n") > MOST_LINES:
            raise NoScript(f"it would have more than {MOST_LINES} lines")
        return text

    def lines(self) -> list[str]:
        """All lines behind the imports. Raises NoScript."""
        self._check()
        setup = self.words.on_device(self.lane.device)
        if self.lane.execution.startswith(REQUIRE):
            inputs = random_inputs(self.case) if self.facts.unknown else self._inputs()
            if not (compared := batch_lines(self.case, self.facts.get("message", ""))):
                raise NoScript("no part of the batch is named")
            return [*setup, *inputs, "", "", *compared]
        setup += self._inputs()
        call = self._traced(setup) if self.foreign else TracedCall(self.case.lines(), ["result"])
        if self.case.constructs and self.shown and self.fault.compares == "value":
            return self._layer(setup)
        body = [*call.lines, *(self._gradients(call.outputs) if self.differentiates else [])]
        return self._whole(setup, body)

    def _check(self) -> None:
        if self.lane.execution != "eager" and not self.lane.execution.startswith(REQUIRE):
            raise NoScript(f"its lane runs under the execution {self.lane.execution}")
        if self.foreign and not self.lane.tables:
            raise NoScript("its lane calls a function of another name")
        if self.fault.outcome == "unstable":
            raise NoScript("a single call does not show it")
        if self.facts.unknown and not self.lane.execution.startswith(REQUIRE):
            raise NoScript(self.facts.unknown)
        if self.case.api.startswith("paddle.sparse.") and self.case.tensors:
            raise NoScript("the case has sparse tensors, which assay makes of dense ones")
        if self.case.constructs and (self.foreign or self.case.api.startswith(OPTIMIZERS)):
            raise NoScript("the case is a layer, whose parameters assay fills")
        if any(spec.strides for spec in self.case.tensors):
            raise NoScript("the case has tensors with strides")

    def _inputs(self) -> list[str]:
        """The lines that make the tensors."""
        lines, leaves = [], self.case.leaves() if self.differentiates else []
        for i, spec in enumerate(self.case.tensors):
            x = f"x{spec.index}"
            if self.files:
                made = loaded(self.words, x, spec)
            else:
                made = self.words.made(spec.dtype, spec.shape, self.facts.tensors[i])
            lines.append(f"{x} = {made}")
            if self.fault["values"] == "layout" and self.words.module == "paddle" and spec.size > 1:
                lines += _as_layout(x, spec)
            lines += [x + self.words.leaf] * (x in leaves)
        if leaves and (copies := self.case.copies(self.words)):
            lines += [f"leaves = [{', '.join(leaves)}]", *copies]
        return lines

    def _traced(self, setup: list[str]) -> TracedCall:
        """What the tables' function calls in the framework."""
        tensors = ", ".join(f'"x{spec.index}": x{spec.index}' for spec in self.case.tensors)
        call = self.case.call("function", self.words.module)
        lines = [
            f"from math import inf, nan\n\nimport {self.words.module}\n",
            "from assay.scripts.tracing import trace\n",
            *setup,
            f'trace("{self.case.api}", {{{tensors}}}, lambda function: {call})\n',
        ]
        if not self.facts.limit:
            raise NoScript("only `assay finding` traces the function of the tables that its lane calls")
        found = traced(self.case.api, "\n".join(lines), self.facts.limit)
        if isinstance(found, str):
            raise NoScript(found)
        return found

    def _gradients(self, outputs: list[str]) -> list[str]:
        """Differentiates under the upstream gradients of the run, or ones if it had no results."""
        if not self.leaves:
            raise NoScript("it differentiates by what is no argument")
        upstream = [f"{self.words.module}.ones_like({output})" for output in outputs]
        known = [output for output in self.facts.outputs if output.dtype in DIFFERENTIABLE]
        if known:
            outputs = [self._part("result", output.path) for output in known]
            upstream = [self.words.made(output.dtype, output.shape, output.numbers) for output in known]
            if self.case.constructs:  # called in float64, too
                upstream = [f"{x}.to({output}.dtype)" for x, output in zip(upstream, outputs, strict=True)]
        leaves = ", ".join(self.leaves)
        lines = [f"outputs, upstream = [{', '.join(outputs)}], [{', '.join(upstream)}]"]
        gradients = f"gradients = {self.words.gradients}(outputs, [{leaves}], upstream, allow_unused=True)"
        if self.fault.compares != "structure":
            return [*lines, gradients]
        # The framework refuses to differentiate outputs that depend on no input.
        some = self.words.differentiates.format("output")
        return [
            *lines,
            f"gradients = [None] * {len(self.leaves)}",
            f"if any({some} for output in outputs):",
            f"    {gradients}",
        ]

    def _layer(self, setup: list[str]) -> list[str]:
        """All lines behind the imports, for an element of what a layer computes."""
        layer, *body = self.case.lines_of_layer()
        self.leaves.append("*parameters")
        body += self._gradients(["result"]) if self.differentiates else []
        names = [f"x{spec.index}" for spec in self.case.tensors]
        flat, apart = f"{self._compared_part()}.flatten()", self.shown.apart
        try:
            right = abs(float(self.shown.right))
        except ValueError:
            raise NoScript("its result has no real numbers") from None
        allowed = f"{apart / 2 / right:.3g} * abs(expected)" if right else f"{apart / 2:.3g}"
        text = LAYER.format(
            seed=self.words.seed,
            layer=layer,
            names=", ".join(names),
            body=_indented(body),
            got=self._element(flat),
            wide=self.words.wide,
            wide_layer=self.words.wide_layer,
            wide_names=", ".join(f"wide({name})" for name in names),
            wrong=f"not abs(got - expected) <= {allowed}"
            if apart and isfinite(apart) and isfinite(right)
            else "math.isfinite(got) != math.isfinite(expected)",
        )
        return [*setup, text]

    def _part(self, whole: str, path: str) -> str:
        if not PATH.fullmatch(path):
            raise NoScript("a part of its result has a name that is no Python")
        return whole + path

    def _whole(self, setup: list[str], body: list[str]) -> list[str]:
        """All lines behind the imports."""
        if self.fault.compares == "input":
            names = ", ".join(f"x{spec.index}" for spec in self.case.tensors)
            before = [f"tensors = [{names}]", "before = [str(x.tolist()) for x in tensors]"]
            return [*setup, *before, *body, CHANGED]
        if self.shown:
            return [*setup, *body, self._compared()]
        if self.fault.outcome in ("crash", "timeout"):
            return [*setup, "", "", "def call():", _indented(body), "", "", PROCESS]
        if not self.fault.raises:
            raise NoScript("nothing is compared")
        if self.fault.phase == "build":
            setup, body = [], setup + body
        return [*setup, "try:", _indented(body), CAUGHT]

    def _compared(self) -> str:
        """Compares what shows the fault with what is right."""
        shown, right = self.shown, self.shown.right_side
        part = self._compared_part()
        differs = "got != expected"
        match self.fault.compares:
            case "structure":
                if shown.lost == (right.kind == "none"):
                    raise NoScript("the kind of its result differs")
                expected = '"a tensor"' if shown.lost else "None"
                return COMPARED.format(
                    got=part, expected=expected, wrong="got is None" if shown.lost else "got is not None"
                )
            case _ if right.kind != "tensor":
                raise NoScript("its result is no tensor")
            case "shape":
                return COMPARED.format(got=f"list({part}.shape)", expected=list(right.shape), wrong=differs)
            case "dtype":
                expected = f'"{self.words.module}.{right.dtype}"'
                return COMPARED.format(got=f"str({part}.dtype)", expected=expected, wrong=differs)
        return self._compared_element(f"{part}.flatten()")

    def _compared_part(self) -> str:
        """The part of the results that shows the fault."""
        if not self.fault.gradient:
            return self._part("result", self.fault.leaf)
        if self.shown.place >= len(self.leaves) and not self.case.constructs:
            raise NoScript("it differentiates by what is no argument")
        return f"gradients[{self.shown.place}]"

    def _element(self, flat: str) -> str:
        """The element of a flat tensor that shows the fault."""
        if not self.shown.element:
            raise NoScript("one element does not show it")
        if self.shown.equality == "sorted":
            flat = f"{self.words.module}.sort({flat})" + "[0]" * (self.words.module == "torch")
        return f"{flat}[{self.shown.index}]"

    def _compared_element(self, flat: str) -> str:
        shown = self.shown
        got = f"{self._element(flat)}.item()"
        if shown.equality == "sign":
            got = f"abs({got})"
        wrong = "got != expected"
        if shown.right == "nan":
            wrong = "got == got"
        elif shown.apart and isfinite(shown.apart) and shown.right_side.dtype not in INTEGER | {"bool"}:
            # Half way between both: a right build is on the other side.
            wrong = f"not abs(got - expected) <= {shown.apart / 2:.3g}"
        return COMPARED.format(got=got, expected=shown.right, wrong=wrong)


def imports(text: str) -> str:
    """The imports from the standard library that the text of a script needs."""
    modules = [name for name in ("copy", "math", "multiprocessing", "pathlib", "sys") if f"{name}." in text]
    lines = [f"import {name}\n" for name in modules]
    return "".join(lines) + "from math import inf, nan\n" * ("inf" in text or "nan" in text)


def loaded(words: Language, name: str, spec: TensorSpec) -> str:
    """The tensor in the file of this name, by load() of repro.py."""
    return f'load("{name}.bin", {words.module}.{spec.dtype}, {list(spec.shape)})'


def _as_layout(x: str, spec: TensorSpec) -> list[str]:
    """Moves the values to memory that is not contiguous, as PaddleFramework.as_layout() does."""
    turned, apart = layout_of(spec.shape, spec.index)
    turn = f"{x} = {x}.transpose(list(range({x}.ndim))[::-1])"
    strided = f"{x} = paddle.stack([paddle.zeros_like({x}), {x}], -1)[..., 1]"
    lines = [turn + ".contiguous()"] * turned + [strided] * apart
    return lines + [turn] * turned


def _indented(lines: list[str]) -> str:
    return indent("\n".join(lines), "    ")
