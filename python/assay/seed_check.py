"""Whether draws follow the seed: the same seed gives the same draws, another seed gives others.

Both lanes add two results to those of a random API. The test lane draws twice more and reports what it finds.
The reference lane states what must be found; a draw with too few possible values may repeat by chance.
"""

from array import array
from collections.abc import Callable
from math import log, prod
from typing import Any

from assay import orders
from assay.draw_distribution import Distribution, bernoulli_draw
from assay.reference import torch
from assay.regimes import USUAL
from assay.results import Numbers
from assay.wire import Job

SAME, OTHER = ".the same seed gives the same draws", ".another seed gives other draws"
CYCLES = ".not every permutation is one cycle"  # as Sattolo's algorithm makes them
FEWEST_OF_A_PERMUTATION = 20  # one in 20^8 permutations of 8 seeds are cycles by chance
FAMILY = "random"
MOST = 1 << 20  # bytes of the result: larger ones may be lent, and may not change any more
ANOTHER = 0x5DEECE66  # what other seeds differ in
SEEDS = 8  # so many other seeds are tried until one gives other draws
# All draws are equal by chance once in 2^64 cases.
BITS = 64


def wanted(entry: Any, job: Job) -> bool:
    """Whether the results of this case are drawn again."""
    plain = job.values == USUAL and "timed" not in job.lane.execution
    return entry is not None and entry.family == FAMILY and plain


def stated(distribution: Any, own_seed: bool) -> list[tuple[str, Any]]:
    """What the reference states of a result with this distribution. A call may have a seed of its own."""
    if not isinstance(distribution, Distribution) or not fits(distribution.shape, str(distribution.dtype)):
        return []
    surely = must_differ(distribution) and not own_seed
    other = as_tensor(True) if surely else bernoulli_draw(0.5, (1,), torch.bool)
    cycles = [(CYCLES, True)] if distribution.kind == "permutation" and permutes(distribution.shape) else []
    return [(SAME, True), (OTHER, other), *cycles]


def as_tensor(holds: bool) -> Numbers:
    """A truth value that may be compared with a draw."""
    return Numbers(array("b", [holds]), "bool", (1,))


def found(framework: Any, job: Job, results: Any, draw: Callable[[], Any]) -> list[tuple[str, Any]]:
    """What the test lane finds. `draw` calls the API again; it may overwrite `results`."""
    if not isinstance(results, framework.tensor_type):
        return []
    if not fits(framework.shape(results), framework.tensor_dtype(results)):
        return []
    first = framework.writable(results)
    framework.seed(job.seed)
    same = framework.equal(draw(), first)
    other = False
    for number in range(1, SEEDS + 1):
        if not same or other:
            break
        framework.seed(job.seed ^ ANOTHER * number)
        other = not framework.equal(draw(), first)
    held = [(SAME, bool(same)), (OTHER, as_tensor(other))]
    if job.api.endswith("randperm") and permutes(framework.shape(results)):
        draws = [first]
        for number in range(1, SEEDS):
            framework.seed(job.seed ^ ANOTHER * number)
            draws.append(draw())
        held.append((CYCLES, not all(is_one_cycle(orders.array_of(each)) for each in draws)))
    return held


def permutes(shape: Any) -> bool:
    """Whether a permutation of this shape is looked at for cycles."""
    return FEWEST_OF_A_PERMUTATION <= prod(shape) <= MOST // 64


def is_one_cycle(order: Any) -> bool:
    """Whether a permutation moves every element along one cycle."""
    place, length = int(order[0]), 1
    while place and length < len(order):
        place, length = int(order[place]), length + 1
    return length == len(order)


def fits(shape: Any, dtype: str) -> bool:
    """Whether a result is never lent, even in 64 bits, or 128 for complex numbers."""
    return prod(shape) * (16 if "complex" in dtype else 8) < MOST


def must_differ(distribution: Distribution) -> bool:
    """Whether draws under SEEDS other seeds are not all equal by chance."""
    return bits_of(distribution) * SEEDS >= BITS


def bits_of(distribution: Distribution) -> float:
    """At least so many bits of chance are in a draw; 0 if that is not known."""
    count = prod(distribution.shape)
    numbers = [each for each in distribution.parameters if isinstance(each, int | float)]
    if distribution.kind == "permutation":
        return sum(log(k, 2) for k in range(1, count + 1))
    if distribution.kind == "integers" and len(numbers) == 2:
        return count * log(max(1, numbers[1] - numbers[0]), 2)
    if distribution.kind == "uniform" and len(numbers) == 2:
        return 4.0 * count * (numbers[0] < numbers[1])
    if distribution.kind in ("normal", "log_normal", "cauchy"):
        scales = [each for each in distribution.parameters[1:] if isinstance(each, int | float)]
        return 4.0 * count * (min(scales, default=1) > 0)
    if distribution.kind in ("exponential", "gamma"):
        return 4.0 * count
    if distribution.kind == "categorical":  # without replacement only the first draw of a row counts
        weights, _, replacement = distribution.parameters
        largest = (weights.double() / weights.double().sum(-1, keepdim=True)).max(-1).values
        each = count / largest.numel() if replacement else 1
        return float(-torch.log2(largest).sum()) * each
    if distribution.kind == "poisson":  # by the probability of the likeliest number
        rate = torch.as_tensor(distribution.parameters[0]).double().clamp(min=0)
        likeliest = rate.floor()
        found = rate - torch.special.xlogy(likeliest, rate) + torch.lgamma(likeliest + 1)
        return float(found.sum()) / log(2) * (count / found.numel())
    if distribution.kind == "bernoulli":
        return _bits_of_choices(distribution.parameters[0], count)
    return 0.0


def _bits_of_choices(share: Any, count: int) -> float:
    """The bits in `count` draws that are 1 with this probability, a number or a tensor."""
    if isinstance(share, int | float):
        likelier = max(share, 1 - share)
        return -count * log(likelier, 2) if likelier < 1 else 0.0
    likelier = torch.maximum(share, 1 - share).double().clamp(0.5, 1)
    return float(-torch.log2(likelier).sum())
