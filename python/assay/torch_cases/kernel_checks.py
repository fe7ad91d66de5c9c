"""What is known of a kernel without a reference: the test lane repeats each call in other ways.

The kernel is called again with the same values, other values, tensors apart in memory, and tensors between
guards. A fault raises KernelFault, so that the case ends as `test_error`. The checks of ALONE might blame a
right kernel that does what kernels seldom do, such as copying its input; a reference decides better.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from assay.torch_cases.oracle import WIDER, mapped
from assay.wire import SKIPPED, Stop

GUARD = 512  # elements before and behind a tensor; it keeps the alignment of the tensor
MOST_ELEMENTS = 1 << 22  # of all tensors of a call that is checked
FEWEST = 16  # elements from which on a share of them says something
ULPS = 256  # by which two runs of one call may differ, in ulps of the largest element
ALIKE = 1e-2  # likewise of a call with tensors apart in memory, as a share of the largest element
UNMOVED = 0.25  # share of a result that no input moves, from which on it counts as not computed
COARSE, FINE = 2.0**-5, 2.0**-14  # relative changes of the inputs: half precision sees the coarse one only
SLOPE = 0.05  # share by which a slope may differ from the gradient
STEPS = {torch.float64: (1e-6, 2.0**-9), torch.float32: (2.0**-9,)}  # a kernel may round float64 to float32
_equal = torch.equal  # a kernel may replace the module's own


class KernelFault(Exception):
    """What is wrong with a kernel."""


class Refusal(Exception):
    """The kernel has raised in a check that it may refuse."""


class Checked:
    """The kernel, whose first call with each shape is checked."""

    def __init__(self, kernel: Callable[..., Any], facts: dict[str, Any]) -> None:
        self.kernel = kernel
        self.facts = facts
        self.seen: set[Any] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        checks = _Checks(self.kernel, self.facts, (args, kwargs))
        tensors = checks.tensors
        plain = all(tensor.is_contiguous() for tensor in tensors)
        torch.manual_seed(torch.initial_seed())  # the checks repeat what is drawn
        try:
            result = self.kernel(*args, **kwargs)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if "CUDA error" in why and "invalid configuration" not in why:  # as of a launch without blocks
                raise
            if not plain:
                raise Stop(SKIPPED, f"the kernel refuses tensors that are not contiguous: {why}") from error
            given = self.facts["given"]
            if given is not None and [list(each.shape) for each in tensors] not in given:
                raise Stop(SKIPPED, f"the kernel refuses this shape, which assay has added: {why}") from error
            raise
        signature = repr([(tensor.shape, tensor.dtype, tensor.stride()) for tensor in tensors])
        small = sum(tensor.numel() for tensor in tensors) <= MOST_ELEMENTS
        if plain and small and signature not in self.seen:
            self.seen.add(signature)
            checks.run(result)
        return result


class _Checks:
    """The checks of one call."""

    def __init__(self, kernel: Callable[..., Any], facts: dict[str, Any], given: Any) -> None:
        self.kernel, self.facts, self.given = kernel, facts, given
        self.tensors = tensors_of(given)
        self.kept = [tensor.detach().clone() for tensor in self.tensors]
        self.named = dict(zip(facts["names"], given[0], strict=False)) | given[1]
        self.changed = [  # positions of the tensors that the call may change
            place
            for place, each in enumerate(self.tensors)
            if any(each is self.named.get(name) for name in facts["changes"])
        ]
        self.moving = [
            place for place, each in enumerate(self.kept) if real(each).is_floating_point() and each.numel()
        ]

    def run(self, result: Any) -> None:
        """Raises KernelFault."""
        self.result = result
        self.found = self._results(result, self.tensors)
        for check in (*ALWAYS, *(() if self.facts["reference"] else ALONE)):
            try:
                check(self)
            except Refusal:
                continue
            except KernelFault as fault:
                hint = "; if that is right, a reference says so" if check in ALONE else ""
                raise KernelFault(f"{fault}{hint}") from None

    def _results(self, result: Any, tensors: list[Any]) -> list[Any]:
        """The tensors that count as results, including the changed ones."""
        return [each.detach() for each in (*tensors_of(result), *(tensors[i] for i in self.changed))]

    def call(self, tensors: list[Any], graph: bool = False) -> list[Any]:
        """The results for other tensors. Raises Refusal if the kernel raises."""
        by = {id(old): new for old, new in zip(self.tensors, tensors, strict=True)}
        args, kwargs = mapped(self.given, lambda part: by.get(id(part), part))
        torch.manual_seed(torch.initial_seed())
        try:
            with torch.set_grad_enabled(graph):
                result = self.kernel(*args, **kwargs)
        except Exception as error:
            if "CUDA error" in str(error):
                raise
            raise Refusal(f"{type(error).__name__}: {error}") from error
        return tensors_of(result) if graph else self._results(result, tensors)

    def again(self) -> list[Any]:
        """Fresh copies of the inputs."""
        return [each.clone() for each in self.kept]

    def other(self, seed: int, places: list[int] | None = None) -> list[Any]:
        """Inputs of which those at `places` have other values in another order."""
        generator = torch.Generator("cpu").manual_seed(seed)
        tensors = self.again()
        for place in self.moving if places is None else places:
            flat = self.kept[place].flatten()
            order = torch.randperm(flat.numel(), generator=generator, device="cpu").to(flat.device)
            factor = 0.5 + 0.4 * float(torch.rand((), generator=generator, device="cpu"))
            tensors[place] = (flat[order] * factor).reshape(self.kept[place].shape)
        return tensors

    def shaken(self, change: float) -> list[Any]:
        """Inputs whose numbers differ by this share."""
        generator = torch.Generator("cpu").manual_seed(1)
        tensors = self.again()
        for place in self.moving:
            tensors[place] *= 1 + change * signs_of(tensors[place], generator)
        return tensors

    # -- always --

    def is_repeatable(self) -> None:
        """A second call with the same values, in memory that had other contents, gives the same."""
        trash = [torch.full_like(each, 3) for each in self.found if each.dtype != torch.bool]
        del trash  # an allocator hands this memory out again
        try:
            more = [self.call(self.again()), self.call(self.again())]
        except Refusal as error:
            raise KernelFault(f"a second call with the same inputs raises {error}") from None
        if not all(alike(each, self.found, ULPS) for each in more):
            raise KernelFault("a second call with the same inputs gives another result")

    def is_not_cached(self) -> None:
        """A call with other values in the same tensors gives another result, and leaves no trace."""
        reused, before = self.other(3), [each.clone() for each in self.found]
        self.call(reused)
        if not all(map(bits_equal, self.found, before)):
            raise KernelFault("a later call changes its result")
        if self.changed:
            return
        for place, each in zip(reused, self.again(), strict=True):
            place.copy_(each)
        for tensors in (reused, self.again()):
            if not alike(self.call(tensors), self.found, ULPS):
                raise KernelFault("its result is that of an earlier call with other values")

    def stays_inside(self) -> None:
        """What lies before and behind the inputs neither changes nor counts."""
        for fill in (float("nan"), 1000.0):
            rooms, tensors = [], []
            for each in self.kept:
                value = fill if each.is_floating_point() else 1
                room = torch.full((each.numel() + 2 * GUARD,), value, dtype=each.dtype, device=each.device)
                inside = room[GUARD : GUARD + each.numel()].view(each.shape)
                inside.copy_(each)
                rooms.append((room, room.clone()))
                tensors.append(inside)
            if not alike(self.call(tensors), self.found, ULPS):
                raise KernelFault("its result depends on memory before or behind its inputs")
            for room, before in rooms:
                if not bits_equal(room[:GUARD], before[:GUARD]) or not bits_equal(
                    room[-GUARD:], before[-GUARD:]
                ):
                    raise KernelFault("it writes before or behind its inputs")

    def takes_any_layout(self) -> None:
        """Tensors whose elements are apart in memory give the same."""
        apart = [
            torch.stack([each, each + 1 if each.dtype != torch.bool else ~each], -1) for each in self.kept
        ]
        if not alike(self.call([each[..., 0] for each in apart]), self.found, 0, ALIKE):
            raise KernelFault("its result differs for tensors that are not contiguous")

    def is_computed(self) -> None:
        """The result is a plain tensor: another class may compute when somebody looks, after a timer."""
        for each in tensors_of(self.result):
            if type(each) not in (torch.Tensor, torch.nn.Parameter, *map(type, self.tensors)):
                raise KernelFault(f"its result is no plain tensor but a {type(each).__name__}")

    def is_no_view(self) -> None:
        """The result has memory of its own."""
        inputs = memory_of(self.tensors) - memory_of(self.tensors[place] for place in self.changed)
        if not self.facts["view"] and not inputs.isdisjoint(memory_of(tensors_of(self.result))):
            raise KernelFault("its result shares the memory of an input")

    # -- without a reference --

    def is_no_copy(self) -> None:
        """The result is not an input."""
        for found in tensors_of(self.result):
            for place, each in enumerate(self.kept):
                if found.numel() >= FEWEST and each.shape == found.shape and bits_equal(found, each):
                    raise KernelFault(f"its result is {self.name(place)} itself, unchanged")

    def depends_on_inputs(self) -> None:
        """Each floating-point input counts."""
        known = [each for each in self.found if each.numel()]
        for place in self.moving:
            if place in self.changed or real(self.kept[place]).unique().numel() < 2 or not known:
                continue
            seen = [self.call(self.other(seed, [place])) for seed in (4, 5)]
            if all(all(map(bits_equal, each, self.found)) for each in seen):
                raise KernelFault(f"its result does not depend on {self.name(place)}")

    def computes_everything(self) -> None:
        """No large part of a result stays as it is, whatever the inputs are."""
        seen = [self.call(self.other(seed)) for seed in (6, 7, 8, 9)]
        for place, known in enumerate(self.found):
            if known.numel() < FEWEST or not self.moving:
                continue
            same = torch.ones_like(known, dtype=torch.bool)
            for each in seen:
                if each[place].shape != known.shape:
                    return
                same &= (each[place] == known) | ((each[place] != each[place]) & (known != known))
            if float(same.double().mean()) > UNMOVED:
                raise KernelFault(
                    f"{int(same.sum())} of {same.numel()} elements of its result are the same for all inputs"
                )

    def has_all_digits(self) -> None:
        """Numbers that differ by less than half precision can tell give other results."""
        coarse, fine = self.call(self.shaken(COARSE)), self.call(self.shaken(FINE))
        for known, left, right in zip(self.found, coarse, fine, strict=True):
            if known.dtype not in (torch.float32, torch.float64) or left.shape != known.shape:
                continue
            moves = (left != known) & (known != known.round())
            if int(moves.sum()) >= FEWEST and float((right == known)[moves].double().mean()) > 0.5:
                raise KernelFault("it has fewer digits than its dtype: it rounds to half precision or so")

    def has_its_gradient(self) -> None:
        """The gradient is the slope of the function, in float64 if the kernel takes that."""
        found = [each for each in tensors_of(self.result) if each.numel()]
        if self.facts["gradients"] is None and not any(each.requires_grad for each in found):
            return
        if self.facts["gradients"] is False or not found:
            return
        try:
            slopes_agree(self, torch.float64)
        except Refusal:
            slopes_agree(self, torch.float32)

    def name(self, place: int) -> str:
        """The parameter of a tensor."""
        return next(
            (name for name, each in self.named.items() if each is self.tensors[place]), f"input {place}"
        )


ALWAYS = (
    _Checks.is_repeatable, _Checks.is_not_cached, _Checks.stays_inside, _Checks.takes_any_layout,
    _Checks.is_computed, _Checks.is_no_view,
)  # fmt: skip
ALONE = (
    _Checks.is_no_copy, _Checks.depends_on_inputs, _Checks.computes_everything, _Checks.has_all_digits,
    _Checks.has_its_gradient,
)  # fmt: skip


def slopes_agree(of: _Checks, dtype: Any) -> None:
    """Compares gradients with differences along random directions and along the gradient itself. Raises
    Refusal if the kernel does not compute in this dtype."""
    places = [place for place in of.moving if place not in of.changed]
    base = of.again()
    for place in places:
        base[place] = base[place].to(dtype.to_complex() if base[place].is_complex() else dtype)
    leaves = [each.detach().requires_grad_(place in places) for place, each in enumerate(base)]
    results = of.call(leaves, graph=True)
    outputs = [each for each in results if each.requires_grad]
    if results and not outputs:
        raise KernelFault("its result has no gradient")
    if not outputs or any(real(each).dtype != dtype for each in outputs):
        raise Refusal
    generator = torch.Generator("cpu").manual_seed(2)
    weights = [torch.rand(each.shape, generator=generator, device="cpu").to(each) for each in outputs]
    weights = [each * (1 + 0.5j) if each.is_complex() else each for each in weights]
    try:
        found = torch.autograd.grad(outputs, [leaves[place] for place in places], weights, allow_unused=True)
    except RuntimeError as error:  # an operator without a formula of its gradient
        if "CUDA error" in str(error):
            raise
        raise Refusal(str(error)) from error
    # In ulps of float32, in which a kernel may compute float64.
    noise = 2.0**-20 * float(torch.cat([real(each.detach()).double().flatten() for each in outputs]).norm())

    def weighted(place: int, change: Any) -> float:
        tensors = [each.detach().clone() for each in base]
        tensors[place] += change
        results = [real(each) for each in of.call(tensors) if real(each).dtype == dtype]
        return sum(float((each.double() * real(w)).sum()) for each, w in zip(results, weights, strict=False))

    for place, gradient in zip(places, found, strict=True):
        slope = torch.zeros_like(base[place]) if gradient is None else gradient.detach()
        for direction in directions(base[place], slope, generator):
            terms = real(slope).double() * real(direction).double()
            said, seen = float(terms.sum()), []
            for step in STEPS[dtype]:
                ends = [weighted(place, sign * step * direction) for sign in (1, -1)]
                seen.append((ends[0] - ends[1]) / (2 * step))
                most = SLOPE * max(abs(said), abs(seen[-1]), float(terms.norm())) + noise / step
                if abs(seen[-1] - said) <= most:
                    break
            else:
                raise KernelFault(
                    f"its gradient of {of.name(place)} is {said:.6g} along a direction in which its result "
                    f"has the slope {seen[-1]:.6g}"
                )


def directions(tensor: Any, slope: Any, generator: Any) -> Iterator[Any]:
    """The gradient's own direction, and random ones; each as large as the tensor's elements."""
    size = tensor.abs() + 1e-3
    if largest := float(slope.abs().max()):
        yield slope * (float(size.sum()) / size.numel() / largest)
    for _ in range(3):
        yield signs_of(tensor, generator) * size


def signs_of(tensor: Any, generator: Any) -> Any:
    """A tensor like it of random 1 and -1; complex numbers have an imaginary part too."""
    signs = torch.randint(0, 2, tensor.shape, generator=generator, device="cpu").to(tensor) * 2 - 1
    return signs * (1 + 0.5j) if tensor.is_complex() else signs


def real(tensor: Any) -> Any:
    """The tensor, with the parts of complex numbers as an axis."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def memory_of(tensors: Iterable[Any]) -> set[int]:
    """The addresses of the memory of tensors."""
    return {each.untyped_storage().data_ptr() for each in tensors if each.numel()}


def tensors_of(value: Any) -> list[Any]:
    """The tensors among arguments or results, each once."""
    found: dict[int, Any] = {}
    mapped(value, lambda part: found.setdefault(id(part), part) if isinstance(part, torch.Tensor) else None)
    return list(found.values())


def bits_equal(left: Any, right: Any) -> bool:
    """Whether two tensors of one shape and dtype have the same elements; NaN equals NaN."""
    left, right = left.detach().contiguous(), right.detach().contiguous()
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return _equal(left, right) or _equal(left.nan_to_num(7.0), right.nan_to_num(7.0))


def alike(found: list[Any], known: list[Any], ulps: float, share: float = 0.0) -> bool:
    """Whether results agree but for rounding."""
    return len(found) == len(known) and all(
        _near(left, right, ulps, share) for left, right in zip(found, known, strict=True)
    )


def _near(found: Any, known: Any, ulps: float, share: float) -> bool:
    if bits_equal(found, known):
        return True
    floating = known.is_floating_point() or known.is_complex()
    if found.shape != known.shape or found.dtype != known.dtype or not floating:
        return False
    wide = getattr(torch, WIDER.get(str(known.dtype).removeprefix("torch."), "float64"))
    unit = torch.finfo(known.dtype).eps
    left, right = found.to(wide), known.to(wide)
    if not _equal(left.isfinite(), right.isfinite()):
        return False
    left, right = left.nan_to_num(0.0, 0.0, 0.0), right.nan_to_num(0.0, 0.0, 0.0)
    return bool((left - right).abs().max() <= (ulps * unit + share) * right.abs().max())
