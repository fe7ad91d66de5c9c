"""Relations that need no reference: other ways to compute a call, whose result should be the same.

`assay relations` compares each with the plain call of the same build (docs/reference/relations.md). A
relation that cannot hold for a call, such as rows of a call without a batch, skips the case.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from assay.frameworks import Framework
from assay.spec import COMPLEX, FLOATING
from assay.torch_cases.oracle import mapped
from assay.wire import SKIPPED, Stop

Function = Callable[..., Any]

_NO_OUT = re.compile(r"keyword|overload|argument")

MOST_ROWS = 64
MOST_DIFFERENCES = 256  # elements of all differentiated inputs
# Half the distance of a difference quotient's points, for numbers near 1: the cube root of float64's unit.
STEP = 6e-6
# A function bends at a point if its slopes on either side differ by a larger share.
KINK = 1e-2
# Results that differ by a larger share of the largest element are of a call without a batch.
ALIKE = 1e-2


def not_here(reason: str) -> Stop:
    """The relation says nothing about this call."""
    return Stop(SKIPPED, reason)


class Operations:
    """What relations do with tensors, in the framework's own words."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.torch = framework.name == "torch"
        self.module: Any = getattr(framework, framework.name)

    def joined(self, parts: Sequence[Any]) -> Any:
        """The parts one after the other along the first axis."""
        return (self.module.cat if self.torch else self.module.concat)(list(parts))

    def own(self, tensor: Any) -> Any:
        """A copy that is differentiated by itself."""
        copy = tensor.detach().clone()
        self.framework.want_gradient(copy)
        return copy

    def gradients(self, outputs: list[Any], inputs: list[Any], upstream: list[Any]) -> list[Any]:
        """The gradients, which can be differentiated again."""
        grad = self.module.autograd.grad if self.torch else self.module.grad
        return list(grad(outputs, inputs, upstream, create_graph=True, allow_unused=True))

    def is_tensor(self, value: Any) -> bool:
        """Whether it is a tensor of the framework."""
        return isinstance(value, self.framework.tensor_type)

    def tensors(self, value: Any) -> list[Any]:
        """The tensors among arguments or results, each once."""
        found: dict[int, Any] = {}
        mapped(value, lambda part: found.setdefault(id(part), part) if self.is_tensor(part) else None)
        return list(found.values())

    def alike(self, found: Any, right: Any) -> bool:
        """Whether results are of the same call, though perhaps rounded otherwise."""
        framework = self.framework
        if not self.is_tensor(found) or list(found.shape) != list(right.shape) or found.dtype != right.dtype:
            return False
        dtype = framework.dtype_name(right.dtype)
        if dtype is None:
            return True  # the lane cannot hand it over anyhow
        with self.module.no_grad():
            if dtype not in FLOATING | COMPLEX:
                return framework.equal(found, right)
            wide = "float64" if dtype in FLOATING else "complex128"
            found, right = (framework.widened(each.detach(), wide) for each in (found, right))
            same = (found == right) | ((found != found) & (right != right))
            sizes = right.abs()
            scale = self.module.where(sizes.isfinite(), sizes, self.module.zeros_like(sizes))
            near = (found - right).abs() <= ALIKE * scale.max() if 0 not in scale.shape else same
            return bool((same | near).all())

    def leaves(self, results: Any) -> list[Any]:
        """The tensors of a result in order."""
        found: list[Any] = []
        mapped(results, lambda part: found.append(part) if self.is_tensor(part) else None)
        return found

    def rebuilt(self, results: Any, leaves: Sequence[Any]) -> Any:
        """The result with other tensors."""
        left = iter(leaves)
        return mapped(results, lambda part: next(left) if self.is_tensor(part) else part)


def replaced(value: Any, by: dict[int, Any]) -> Any:
    """The arguments with some tensors replaced, by their identity."""
    return mapped(value, lambda part: by.get(id(part), part))


def in_parts(
    operations: Operations, function: Function, cut: Callable[[Any], list[Any]], join: Callable[[Any], Any]
) -> Function:
    """The call for parts of the batch, joined."""

    def run(*args: Any, **kwargs: Any) -> Any:
        given = (args, kwargs)
        sizes = [tensor for tensor in operations.tensors(given) if len(tensor.shape) and tensor.shape[0] > 1]
        if not sizes or kwargs.get("out") is not None:
            raise not_here("there is no batch")
        first = sizes[0]
        if first.shape[0] > MOST_ROWS:
            raise not_here(f"the batch has more than {MOST_ROWS} rows")
        result = function(*args, **kwargs)
        whole = operations.leaves(result)
        batches = [[each for each in sizes if each.shape[0] == first.shape[0]], [first]]
        for batch in batches[: 1 + (len(batches[0]) > 1)]:
            try:
                pieces = [cut(tensor) for tensor in batch]
                calls = [dict(zip(map(id, batch), part, strict=True)) for part in zip(*pieces, strict=True)]
                parts = [
                    operations.leaves(function(*part[0], **part[1]))
                    for part in (replaced(given, call) for call in calls)
                ]
                found = [join(list(each)) for each in zip(*parts, strict=True)]
            except Exception:  # its other arguments do not fit a part
                continue
            if len(found) == len(whole) and all(map(operations.alike, found, whole)):
                return operations.rebuilt(result, found)
        raise not_here("the call has no batch along the first axis")

    return run


def _rows(tensor: Any) -> list[Any]:
    return [tensor[row : row + 1] for row in range(tensor.shape[0])]


def _halves(tensor: Any) -> list[Any]:
    middle = tensor.shape[0] // 2
    return [tensor[:middle], tensor[middle:]]


def rows(operations: Operations, function: Function, api: str) -> Function:
    """Each row of the batch alone."""
    return in_parts(operations, function, _rows, operations.joined)


def halves(operations: Operations, function: Function, api: str) -> Function:
    """Each half of the batch alone."""
    return in_parts(operations, function, _halves, operations.joined)


def permuted(operations: Operations, function: Function, api: str) -> Function:
    """The batch in reverse order."""
    flip = operations.module.flip
    return in_parts(operations, function, lambda each: [flip(each, [0])], lambda parts: flip(parts[0], [0]))


def strided(operations: Operations, function: Function, api: str) -> Function:
    """Tensors whose elements are apart in memory."""
    stack = operations.module.stack

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            tensors = operations.tensors((args, kwargs))
            apart = {id(each): stack([each, each], -1)[..., 0] for each in tensors}
        except Exception as error:  # Paddle slices tensors of up to six axes
            raise not_here(f"no such tensors: {error}") from error
        if not apart or kwargs.get("out") is not None:
            raise not_here("there is no tensor")
        args, kwargs = replaced((args, kwargs), apart)
        return function(*args, **kwargs)

    return run


def in_place(operations: Operations, function: Function, api: str) -> Function:
    """The in-place form of the function."""
    twin = _in_place_form(operations.framework, api)

    def run(*args: Any, **kwargs: Any) -> Any:
        if twin is None or not args or not operations.is_tensor(args[0]):
            raise not_here("it has no in-place form")
        with operations.module.no_grad():
            right = function(*args, **kwargs)
        if not operations.is_tensor(right) or right.dtype != args[0].dtype:
            raise not_here("the result has another dtype than the argument")
        changed = operations.framework.writable(args[0])
        try:
            twin(changed, *args[1:], **kwargs)
        except Exception as error:  # the result has another shape or dtype than the argument
            raise not_here(f"its in-place form does not take the arguments: {error}") from error
        return changed

    return run


def _in_place_form(framework: Framework, api: str) -> Function | None:
    root, _, stem = api.partition(".")[0], "", api.rpartition(".")[2]
    for name in (f"{api}_", f"{root}.Tensor.{stem}_"):
        try:
            return framework.resolve(name)
        except (AttributeError, Stop):
            continue
    return None


def out(operations: Operations, function: Function, api: str) -> Function:
    """The result in a tensor that `out` names, which had other values before."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with operations.module.no_grad():
            right = function(*args, **kwargs)
            if not operations.is_tensor(right) or "out" in kwargs or api.endswith("__"):
                raise not_here("it has no out=")
            place = operations.module.ones_like(right)
            given = mapped((args, kwargs), lambda p: p.detach() if operations.is_tensor(p) else p)
            try:
                returned = function(*given[0], **given[1], out=place)
            except (TypeError, RuntimeError) as error:
                if isinstance(error, TypeError) or _NO_OUT.search(str(error)):
                    raise not_here("it has no out=") from error
                raise
            if returned is NotImplemented:
                raise not_here("it has no out=")
            return place

    return run


def differences(operations: Operations, function: Function, api: str) -> Function:
    """The function, whose gradient is a central difference quotient in float64."""
    framework, base = operations.framework, "Function" if operations.torch else "PyLayer"

    def run(*args: Any, **kwargs: Any) -> Any:
        given = (args, kwargs)
        wanted = _wanted(operations, given)

        def call(tensors: Sequence[Any]) -> Any:
            own = [operations.own(tensor) for tensor in tensors]
            part = replaced(given, dict(zip(map(id, wanted), own, strict=True)))
            with operations.module.enable_grad():
                return own, function(*part[0], **part[1])

        own, plain = call(wanted)
        leaves = operations.leaves(plain)
        places = [place for place, each in enumerate(leaves) if framework.differentiable(each)]
        outputs = [leaves[place] for place in places]
        if not places or any(framework.tensor_dtype(each) != "float64" for each in outputs):
            raise not_here("differences need results of float64 with a gradient")
        # Raises an error for an input that the framework cannot differentiate.
        reached = framework.gradients(outputs, own, [each.detach() for each in outputs])

        def at(tensors: Sequence[Any]) -> list[Any]:
            results = operations.leaves(call(tensors)[1])
            return [results[place].detach() for place in places]

        middle = [each.detach() for each in outputs]
        # Not within backward(): Paddle's engine does not run inside itself.
        jacobian = [
            None if known is None else _slopes(at, wanted, place, middle)
            for place, known in enumerate(reached)
        ]

        class Numeric(getattr(operations.module.autograd, base)):  # type: ignore[misc]
            @staticmethod
            def forward(context: Any, *tensors: Any) -> Any:
                return tuple(at(tensors))

            @staticmethod
            def backward(context: Any, *upstream: Any) -> Any:
                return tuple(
                    slopes and _contracted(operations, tensor, slopes, upstream)
                    for tensor, slopes in zip(wanted, jacobian, strict=True)
                )

        found = Numeric.apply(*wanted)
        for place, each in zip(places, found if isinstance(found, tuple | list) else [found], strict=True):
            leaves[place] = each
        return operations.rebuilt(plain, leaves)

    return run


def _wanted(operations: Operations, given: Any) -> list[Any]:
    """The differentiated inputs. Raises Stop unless they are few numbers of float64."""
    framework = operations.framework
    wanted = [each for each in operations.tensors(given) if framework.differentiable(each)]
    if not wanted:
        raise not_here("nothing is differentiated")
    if any(framework.tensor_dtype(each) != "float64" for each in wanted):
        raise not_here("differences need float64")
    if sum(each.numel() if operations.torch else each.size for each in wanted) > MOST_DIFFERENCES:
        raise not_here(f"more than {MOST_DIFFERENCES} elements")
    return wanted


def _slopes(at: Callable[..., list[Any]], inputs: Any, place: int, middle: list[Any]) -> list[list[Any]]:
    """For each element of an input the difference quotient of each result. Raises Stop at a kink."""
    base = inputs[place].detach()
    flat = base.reshape([-1])
    slopes = []
    for element in range(flat.shape[0]):
        step = STEP * max(1.0, abs(float(flat[element])))
        ends = []
        for moved in (step, -step):
            copy = flat.clone()
            copy[element] = flat[element] + moved
            tensors = [each.detach() for each in inputs]
            tensors[place] = copy.reshape(base.shape)
            ends.append(at(tensors))
        for above, below, here in zip(*ends, middle, strict=True):
            change, bend = (above - below).abs(), (above + below - 2 * here).abs()
            if bool((bend > KINK * (change + step)).any()):
                raise not_here("the function has a kink at these values")
        slopes.append([(above - below) / (2 * step) for above, below in zip(*ends, strict=True)])
    return slopes


def _contracted(operations: Operations, tensor: Any, slopes: list[list[Any]], upstream: Any) -> Any:
    """The gradient of one input, from the slopes of its elements."""
    numbers = [
        sum(
            float((slope * weight).sum())
            for slope, weight in zip(each, upstream, strict=True)
            if weight is not None
        )
        for each in slopes
    ]
    made = operations.module.tensor if operations.torch else operations.module.to_tensor
    place = tensor.device if operations.torch else tensor.place
    return made(numbers, dtype=tensor.dtype).to(place).reshape(tensor.shape)


def gradient(operations: Operations, function: Function, api: str) -> Function:
    """The gradients of half the sum of the results' squares, which can be differentiated again."""
    framework = operations.framework

    def run(*args: Any, **kwargs: Any) -> Any:
        wanted = [each for each in operations.tensors((args, kwargs)) if framework.differentiable(each)]
        leaves = operations.leaves(function(*args, **kwargs))
        results = [each for each in leaves if framework.differentiable(each)]
        if not wanted or not results:
            raise not_here("nothing is differentiated")
        found = operations.gradients(results, wanted, results)
        return [each for each in found if each is not None]

    return run


# These also need the parameters of a layer, to differentiate by them.
DIFFERENTIATES = ("differences", "gradient")
RELATIONS: dict[str, Callable[[Operations, Function, str], Function]] = {
    each.__name__: each for each in (rows, halves, permuted, strided, in_place, out, differences, gradient)
}
