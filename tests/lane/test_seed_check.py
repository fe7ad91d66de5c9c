"""What is stated and found of draws and their seeds, without a framework."""

import random
from types import SimpleNamespace

import pytest
from assay import draw_distribution, seed_check


class Tensor(list):
    pass


class Framework:
    tensor_type = Tensor
    random = random.Random(0)

    def seed(self, seed):
        self.random = random.Random(seed)

    def shape(self, tensor):
        return (len(tensor),)

    def writable(self, tensor):
        return Tensor(tensor)

    def tensor_dtype(self, tensor):
        return "float32"

    def equal(self, left, right):
        return list(left) == list(right)


def drawn(framework, *, seed=None, follows=True):
    """Draws of a generator that follows its seed, has a fixed one, or has none."""
    if not follows:
        framework.random = random.Random()
    elif seed is not None:
        framework.seed(seed)
    return Tensor(framework.random.random() for _ in range(40))


@pytest.mark.parametrize(
    ("kind", "expected"), [({}, [1, 1]), ({"seed": 7}, [1, 0]), ({"follows": False}, [0, 0])]
)
def test_what_a_generator_does_is_found(kind, expected):
    framework, job = Framework(), SimpleNamespace(seed=3, api="paddle.rand")
    framework.seed(3)
    first = drawn(framework, **kind)
    found = seed_check.found(framework, job, first, lambda: drawn(framework, **kind))
    assert [path for path, _ in found] == [seed_check.SAME, seed_check.OTHER]
    assert [found[0][1], found[1][1].values[0]] == expected


@pytest.mark.parametrize(
    ("distribution", "surely"),
    [
        (draw_distribution.uniform_draw(0.0, 1.0, (40,), "float32"), True),
        (draw_distribution.uniform_draw(1.0, 1.0, (40,), "float32"), False),
        (draw_distribution.normal_draw(0.0, 0.0, (40,), "float32"), False),
        (draw_distribution.normal_draw(0.0, 1.0, (1,), "float32"), False),
        (draw_distribution.integer_draw(0, 2, (7,), "int64"), False),
        (draw_distribution.integer_draw(0, 2, (8,), "int64"), True),
        (draw_distribution.permutation(5, "int64"), False),
        (draw_distribution.permutation(6, "int64"), True),
        (draw_distribution.bernoulli_draw(0.0, (10**4,), "float32"), False),
        (draw_distribution.bernoulli_draw(0.5, (7,), "float32"), False),
        (draw_distribution.bernoulli_draw(0.5, (8,), "float32"), True),
        (draw_distribution.bernoulli_draw(0.99, (500,), "float32"), False),
    ],
)
def test_draws_that_may_be_equal_by_chance_need_not_differ(distribution, surely):
    assert seed_check.must_differ(distribution) is surely


def test_a_generator_of_few_values_gives_others_under_some_seed():
    framework, job = Framework(), SimpleNamespace(seed=3, api="paddle.rand")
    coins = lambda: Tensor(framework.random.getrandbits(1) for _ in range(3))  # noqa: E731
    for seed in range(20):
        job.seed = seed
        framework.seed(seed)
        found = dict(seed_check.found(framework, job, coins(), coins))
        assert list(found[seed_check.OTHER].values) == [1]


def test_a_cycle_is_one_only_if_it_has_all_elements():
    assert seed_check.is_one_cycle([1, 2, 3, 0])
    assert not seed_check.is_one_cycle([1, 0, 3, 2])
    assert not seed_check.is_one_cycle([0, 2, 3, 1])
