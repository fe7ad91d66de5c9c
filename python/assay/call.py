"""One case in a lane: the call, its results, differentiation."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from assay import compilers, kernel, seed_check
from assay.draw_distribution import Distribution
from assay.error_bar import Inputs, bar_of
from assay.execution import Execution
from assay.frameworks import Framework, missing
from assay.ignored import ignored_by
from assay.in_place import InPlace
from assay.inputs import GIANT, LARGE_INPUT, CaseInputs, Context, refers
from assay.layers import LAYER
from assay.names import callable_name, public_name
from assay.observed import skipped
from assay.operators import ROOT as OPERATORS
from assay.operators import check_arguments, custom_name
from assay.regimes import OBSERVED, equalities_of, skip_of, specs_in
from assay.registry import REGISTRY, Api
from assay.results import flatten
from assay.shared import NO_KERNEL, SKIPPED, STAGES, UNSUPPORTED, UPSTREAM
from assay.variant import PLAIN, Variant
from assay.wire import CODES, DIFFERENTIABLE, Job, Leaf, Stop, count_of, refuse, text_of

STAGE_INDEX = {stage: index for index, stage in enumerate(STAGES)}

LAYS_OUT = ("contiguous", "clone", "_like")  # functions whose result has the memory format that is asked for
MOST_LEAVES = 1 << 14  # in a result


_UNDIFFERENTIABLE = re.compile(
    r"not differentiable with respect to argument '(\w+)'|derivative for .* is not implemented"
    r"|(?:does not|don't) support automatic differentiation|no autograd formula was registered"
)


def undifferentiable(error: BaseException) -> str | None:
    """The argument that PyTorch says it cannot differentiate; empty if it names none, None if it is another
    error."""
    found = _UNDIFFERENTIABLE.search(text_of(error)) if isinstance(error, RuntimeError) else None
    return found and (found[1] or "")


class Functions:
    """The functions that a lane calls for APIs: the framework's own or the tables' reference, wrapped by the
    lane's execution."""

    def __init__(self, framework: Framework, execution: str = "eager") -> None:
        self.framework = framework
        self.execution = Execution(execution, framework)
        self.known: dict[str, Callable[..., Any]] = {}
        # The parameters that PyTorch cannot differentiate in the case of this id.
        self.undifferentiated: tuple[int, set[str]] = (0, set())

    def of(self, job: Job, entry: Api | None) -> Callable[..., Any]:
        """The function for the job's API, wrapped unless it makes a layer.

        Raises Stop with UNSUPPORTED if the lane calls reference functions and the API has none."""
        found = self.known.get(job.api)
        if found is None:
            found = self._plain(job, entry)
            if entry is None or not entry.kind:
                found = self.execution.wrap(found, job.api)
            self.known[job.api] = found
        return found

    def _plain(self, job: Job, entry: Api | None) -> Callable[..., Any]:
        if refers(job, entry):
            if entry is None:
                raise Stop(UNSUPPORTED, f"no reference is registered for {job.api}")
            return entry.call
        found = self.own(job.api, entry)
        alone = job.lane.twin and self.execution.is_eager and entry is not None and entry.unreferenced
        return kernel.checked_operator(found, entry) if alone and not kernel.is_kernel(job.api) else found

    def own(self, api: str, entry: Api | None) -> Callable[..., Any]:
        """The framework's own function. Raises Stop if a case may not call it, or if there is none."""
        if entry is not None and entry.own:
            return self.framework.resolve(api)
        root = api.partition(".")[0]
        if {root, self.framework.name} == {"paddle", "torch"}:
            raise Stop(
                UNSUPPORTED, f"{api}: this lane runs {self.framework.name}; --test-lane chooses another"
            )
        if custom_name(api):
            return self._custom(api, entry)
        public_name(api, known=entry is not None)
        if entry is None:
            callable_name(api)
        try:
            return self.framework.resolve(api)
        except AttributeError:
            refuse(missing(self.framework, api, REGISTRY))

    def _custom(self, api: str, entry: Api | None) -> Callable[..., Any]:
        """A custom operator. Raises Stop if the build has none of this name, or the tables have no
        reference for it."""
        found = self.framework.custom_operator(custom_name(api))
        if found is None:
            raise Stop(NO_KERNEL, f"this build has no custom operator {custom_name(api)}: {_LOAD}")
        if entry is None:
            raise Stop(UNSUPPORTED, f"no reference is registered for {api}: --apis names a folder with one")
        return found


_LOAD = "`modules` of assay.toml imports the module that registers it"


class Call:
    """One case in the lane. `phase` is the phase that it is in, also after an exception."""

    outputs: Sequence[Leaf] = ()
    gradients: Sequence[Leaf] = ()
    differentiable = False
    leaves: Sequence[tuple[str, Any]] = ()
    overwritten: Sequence[str] = ()
    runs = False  # whether skip_of is known to say so
    note = ""  # what the truth says of PyTorch's own float64 (assay.truth)

    def __init__(self, context: Context, job: Job, variant: Variant = PLAIN) -> None:
        self.context = context
        self.framework, self.native, self.functions, self.hand_over = context
        self.job = job
        self.variant = variant
        self.inputs = CaseInputs(context, job, variant)
        self.entry = self.inputs.entry
        self.refers = self.inputs.refers
        self.phase = "build"
        self.upstream_dtypes: dict[int, str] = {}  # of upstream gradients, by the output's position
        # Only results of the reference have error bars.
        self.barred = job.settings.error_bar and job.lane.role != "test" and variant.barred

    def run(self) -> None:
        """Runs the case and sets `outputs` and `gradients`. `outputs` stay set if differentiation fails."""
        self.variant.run(lambda: self.evaluate(self._function()))

    def run_unfilled(self) -> None:
        """Runs only the call, with large inputs unfilled. If there is no kernel, this raises the framework's
        error before the memory of these inputs is touched. Only inputs that may have any value stay unfilled
        (regimes.is_free): the call gets such values in the regimes wide, nan and infinity too."""
        self.inputs.unfilled = True
        function, args, kwargs = self._ready(self._function())
        self._enter("forward")
        self._bound_memory()
        self.let_go()  # the result is not read either
        self._forward(function, args, kwargs)

    def _function(self) -> Callable[..., Any]:
        """The function to call. Also names the arguments. Raises Stop if the case does not run."""
        job, entry = self.job, self.entry
        if entry is None and job.lane.known_only:
            self.functions.own(job.api, entry)  # a name that does not exist is no gap of the tables
            raise Stop(UNSUPPORTED, f"no reference is registered for {job.api}")
        if entry is not None and entry.skip:
            raise Stop(SKIPPED, entry.skip)
        if (job.construction is not None) != bool(entry is not None and entry.kind):
            refuse(f"{job.api}: write a layer as API(…)(…), and a function as API(…)")
        if entry is not None and job.api.startswith(OPERATORS):
            check_arguments(entry, job.args, job.kwargs)
        self.inputs.name_arguments()
        if entry is not None and self.refers and (reason := ignored_by(entry, self.inputs.named)):
            raise Stop(UNSUPPORTED, reason)
        if job.values == OBSERVED:
            skip = skipped(entry, self.inputs.named, self.inputs.observed)
        else:
            skip = None if self.runs else skip_of(entry, self.inputs.named, job.values)
        if skip is not None:
            raise Stop(SKIPPED, skip.reason)
        function = self.functions.of(job, entry)
        compilers.watch(self.native)  # those that it has imported
        return function

    def _ready(self, function: Callable[..., Any]) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
        """The function as the case calls it, and its arguments."""
        job, entry = self.job, self.entry
        self.framework.seed(job.seed)
        try:
            construction = self.inputs.construction()
            args, kwargs = self.inputs.arguments()
        except ValueError as error:  # of a rule: the case says nothing about the API
            raise Stop(UNSUPPORTED, f"assay cannot make the inputs: {error}") from error
        self.inputs.tensors.clear()
        if construction is not None:
            function = self.inputs.made(function, *construction)
            if entry.kind == LAYER:
                function = self.functions.execution.wrap(function, job.api)
        return function, args, kwargs

    def evaluate(self, function: Callable[..., Any]) -> None:
        """Runs the case with this function, and sets `outputs`, `gradients` and `overwritten`."""
        entry = self.entry
        function, args, kwargs = self._ready(function)
        if self.inputs.dump is not None:
            self.inputs.dump.save("input", self.inputs.dumped)
        self._enter("forward")
        self._bound_memory()
        results = self._shown(self._forward(function, args, kwargs), args, kwargs)
        self._enter("copy")
        leaves = flatten(results, "", self.framework.tensor_type, self.framework.sparse_parts)
        if self.inputs.updates():
            leaves += self._updated(args, kwargs)
        self.leaves = leaves
        if self.inputs.dump is not None:
            self.inputs.dump.save("output", leaves)
        if len(leaves) > MOST_LEAVES:
            raise Stop(UNSUPPORTED, f"the result has {len(leaves)} parts; assay compares up to {MOST_LEAVES}")
        equal = equalities_of(entry, self.inputs.named, self.job.values)
        inputs = Inputs.of(self.inputs.named) if self.barred else None
        bar = partial(bar_of, entry, self.job.values, inputs) if self.barred else None
        self.outputs = [
            self.hand_over.leaf(path, value, equal[min(position, len(equal) - 1)] if equal else "value", bar)
            for position, (path, value) in enumerate(self.variant.results(leaves, gradients=False))
        ]
        self._note_overwritten()
        if seed_check.wanted(entry, self.job):
            self.outputs += self._seed_check(results, lambda: self._forward(function, args, kwargs))
        self._enter("backward", stage="build")
        gradients = self.variant.results(self._backward(leaves), gradients=True)
        self._enter("backward", stage="copy")
        if self.inputs.dump is not None:
            self.inputs.dump.save("grad", gradients)
        self.differentiable = bool(gradients)
        if bar is not None:
            inputs.sizes.extend(count_of(leaf.shape) for leaf in self.outputs)
            bar = partial(bar, upstream=UPSTREAM)
        self.gradients = [self.hand_over.leaf(name, value, "value", bar) for name, value in gradients]
        self.let_go()

    def learnt(self, error: BaseException) -> bool:
        """Whether the error says what PyTorch cannot differentiate. The next try of the case knows."""
        if self.entry is None or not self.entry.own or not self.inputs.wanted:
            return False
        name = undifferentiable(error)
        if name is None:
            return False
        known = self.inputs.undifferentiated()
        more = known | ({name} if name in self.inputs.named else set(self.inputs.named))
        self.functions.undifferentiated = self.job.id, more
        return more > known

    def _shown(self, results: Any, args: list[Any], kwargs: Any) -> Any:
        """The results as the table compares them. Its references return that form already."""
        entry = self.entry
        if entry is None or self.refers and not entry.own:
            return results
        if kwargs.get("memory_format") is not None and entry.name.endswith(LAYS_OUT):
            laid_out = self.refers or self.framework.laid_out(results, kwargs["memory_format"])
            results = {"result": results, "in the memory format": laid_out}
        return entry.shown(results, self._given(args, kwargs)) if entry.shown else results

    def _seed_check(self, results: Any, draw: Callable[[], Any]) -> list[Leaf]:
        """Whether the draws follow the seed (assay.seed_check)."""
        if self.refers:
            leaves = seed_check.stated(results, bool(self.inputs.named.get("seed")))
        else:
            leaves = seed_check.found(self.framework, self.job, results, draw)
        return [self.hand_over.leaf(path, value, "value") for path, value in leaves]

    def _bound_memory(self) -> None:
        """Makes allocations that are too large for the machine fail. The lane lifts the limit afterwards."""
        if self.inputs.elements >= GIANT:
            self.native.bound_memory(True)

    def let_go(self) -> None:
        """Stops overwriting freed memory for a case with large tensors, because that memory may never have
        been touched. It is overwritten when it is allocated again."""
        if self.inputs.elements >= LARGE_INPUT:
            self.native.scramble(False)

    def _given(self, args: list[Any], kwargs: Any) -> dict[str, Any]:
        """The arguments by the names of their parameters."""
        return dict(zip(self.inputs.taken, args, strict=False)) | kwargs

    def _updated(self, args: list[Any], kwargs: Any) -> list[tuple[str, Any]]:
        """The arguments that the API promises to change, with their values after the call."""
        given, framework = self._given(args, kwargs), self.framework
        changed = {name: given[name] for name in self.inputs.updates() if name in given}
        parts = flatten(changed, "", framework.tensor_type, framework.sparse_parts)
        return [
            (f"{path} afterwards", framework.constant(value))
            for path, value in parts
            if isinstance(value, framework.tensor_type)
        ]

    def _note_overwritten(self) -> None:
        """Notes inputs that the call changed but must not change."""
        if self.refers or self.job.values == "layout" or not self.variant.checks_inputs:
            return
        changed = self.native.overwritten()
        if not changed:
            return
        free = self.inputs.promised()
        self.overwritten = [
            name
            for name, value in self.inputs.named.items()
            for spec in specs_in([value])
            if spec.index in changed and spec.index not in free
        ]

    def times(self) -> tuple[int, ...]:
        """Ends the case and returns its nanoseconds in each of STAGES."""
        self._settle()
        return self.native.times()

    def _settle(self) -> None:
        """Waits for a GPU if the case is large, so that each stage has the time of its own work."""
        if self.inputs.elements >= LARGE_INPUT:
            self.native.wait()

    def _enter(self, phase: str, stage: str = "") -> None:
        """Enters `phase`. Time counts for `stage` from now on, or for the stage named like the phase."""
        self.phase = phase
        self._settle()
        self.native.enter(STAGE_INDEX[stage or phase])

    # -- the call --

    def _forward(self, function: Callable[..., Any], args: list[Any], kwargs: Any) -> Any:
        args, kwargs = self.variant.arguments(self.inputs.taken, args, kwargs)
        function = self.variant.around(function)
        changes = self.inputs.changes
        if self.refers or not changes:
            return function(*args, **kwargs)
        position = self.entry.parameters.index(changes)
        viewed = self.job.values == "layout"
        call = InPlace(
            self.framework, self.functions.execution, changes, position, viewed, bool(self.inputs.wanted)
        )
        return call.result(function, args, kwargs)

    def _backward(self, leaves: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """The gradients of the wanted inputs. Both lanes use the same upstream gradient.

        If an output is drawn from two values, the result is drawn from the gradients of both."""
        if not self.inputs.wanted:
            return []
        framework = self.framework
        outputs, upstream, distributions, others = self._through(leaves)
        if not outputs:
            return []
        wanted = [tensor for _, tensor in self.inputs.wanted]
        self._enter("backward")
        found = framework.gradients(outputs, wanted, upstream)
        if distributions:
            ends = self._of_others(others, wanted)
            found = [drawn_gradient(distributions[0], *pair) for pair in zip(found, ends, strict=True)]
        return [(name, value) for (name, _), value in zip(self.inputs.wanted, found, strict=True)]

    def _through(
        self, leaves: list[tuple[str, Any]]
    ) -> tuple[list[Any], list[Any], list[Distribution], list[tuple[Any, Any]]]:
        """The differentiable outputs, their upstream gradients, the distributions among them, and pairs of
        the values that replace dropped ones and their upstream gradients."""
        framework = self.framework
        outputs, upstream, distributions, others = [], [], [], []
        for position, (_, value) in enumerate(leaves):
            distribution = None
            if isinstance(value, Distribution) and value.kind in ("kept", "either"):
                distribution = value
                distributions.append(distribution)
                value = distribution.parameters[0]
            if not isinstance(value, framework.tensor_type) or not framework.differentiable(value):
                continue
            dtype = framework.tensor_dtype(value)
            if dtype not in DIFFERENTIABLE:
                continue
            gradient = self._upstream(position, framework.shape(value), dtype)
            outputs.append(value)
            upstream.append(gradient)
            if distribution is None:
                continue
            for other in distribution.parameters[1:-2]:
                if isinstance(other, framework.tensor_type) and framework.differentiable(other):
                    others.append((other, gradient))
        return outputs, upstream, distributions, others

    def _upstream(self, position: int, shape: Any, dtype: str) -> Any:
        """The upstream gradient of the output at this position."""
        self.upstream_dtypes[position] = dtype
        return self.variant.upstream(position, dtype, partial(self._upstream_of, position, shape))

    def _upstream_of(self, position: int, shape: Any, dtype: str) -> Any:
        count = count_of(shape)
        framework = self.framework
        if count < LARGE_INPUT:
            gradient = framework.empty(shape, dtype)
        elif (gradient := self._upstream_shared(position, shape, dtype)) is not None:
            return gradient
        else:
            gradient = self.inputs.room(shape, dtype)
        pointer = framework.pointer(gradient) if count else 0
        self.native.fill_upstream(position, pointer, count, CODES[dtype], self.inputs.largest)
        return framework.placed(gradient)

    def _upstream_shared(self, position: int, shape: Any, dtype: str) -> Any:
        """The upstream gradient in memory that the slot's lanes share; None if there is no such memory."""
        if not self.inputs.can_share():
            return None
        made = self.native.fill_upstream_shared(position, tuple(shape), CODES[dtype], self.inputs.largest)
        return self.inputs.adopted(made, dtype)

    def _of_others(self, others: list[tuple[Any, Any]], wanted: list[Any]) -> list[Any]:
        """Gradients through the values that replace dropped ones."""
        if not others:
            return [None] * len(wanted)
        values, upstream = zip(*others, strict=True)
        return self.framework.gradients(list(values), wanted, list(upstream))


def drawn_gradient(distribution: Distribution, kept: Any, other: Any) -> Distribution | None:
    """The gradient through an output with the distribution `kept` or `either`. It is drawn from the gradient
    of the kept values and that of the values that replace dropped ones. None if there is no gradient."""
    share, groups = distribution.parameters[-2:]
    some = other if kept is None else kept
    if some is None:
        return None
    if other is None:
        return Distribution("kept", (kept, share, groups), tuple(some.shape), some.dtype)
    first = 0.0 if kept is None else kept
    return Distribution("either", (first, other, share, groups), tuple(some.shape), some.dtype)
