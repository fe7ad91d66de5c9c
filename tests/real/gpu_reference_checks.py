"""What PyTorch's GPU kernels do otherwise than its CPU's, or cannot, references compute on the CPU.

test_gpu_references.py runs it in PyTorch's Python. No GPU is there: a tensor says that it is on one, and
what a GPU computes wrongly refuses it there.
"""

import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from assay.apis import statistics  # noqa: E402
from assay.registry import REGISTRY, load_all  # noqa: E402

load_all()


class OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU, until it is moved to the CPU."""

    is_cuda = True
    refused = (torch.nn.functional.hardswish, torch.mode, torch.linalg.lstsq)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in cls.refused:
            raise AssertionError(f"{function.__name__} ran on the GPU")
        found = super().__torch_function__(function, types, args, kwargs or {})
        if function is torch.Tensor.to and args[1] == "cpu":
            return found.as_subclass(torch.Tensor)
        return found


def on_gpu(values):
    return torch.tensor(values, dtype=torch.float64).as_subclass(OnGpu)


def reference(api):
    return REGISTRY[api].call


def test_hardswish_of_float64():
    found = reference("paddle.nn.functional.hardswish")(on_gpu([2.0, -1.0]))
    assert found.tolist() == [2 * 5 / 6, -1 * 2 / 6]


def test_mode_gives_the_least():
    values, _, _ = reference("paddle.mode")(on_gpu([[4.0, 0.0, 4.0, 0.0]]))
    assert values.tolist() == [0.0]


def test_least_squares_by_another_driver():
    found = reference("paddle.linalg.lstsq")(
        on_gpu([[2.0, 0.0], [0.0, 4.0]]), on_gpu([[2.0], [2.0]]), None, "gelsd"
    )
    assert found[0].flatten().tolist() == [1.0, 0.5]
    on_the_cpu = reference("paddle.linalg.lstsq")(torch.eye(2), torch.ones(2, 1), None, "gelsd")
    assert found[2].dtype == on_the_cpu[2].dtype


def test_copysign_of_what_has_no_sign():
    x = torch.tensor([True, False])
    assert reference("paddle.copysign")(x, torch.tensor([True, True])).tolist() == [True, False]


def test_rows_of_a_histogram_are_counted_in_blocks():
    """Against PyTorch's function, which has no kernel for GPUs. Values lie on edges and outside of them."""
    statistics.ROWS = 7
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(-1, 12, (5, 10, 2), generator=generator).double()
    weights = torch.rand(5, 10, generator=generator, dtype=torch.float64)
    edges = tuple(torch.tensor(edge, dtype=torch.float64) for edge in ([0, 1, 2.5, 10], [1, 4, 5]))
    for bins, ranges in ((4, None), ([2, 3], [0.0, 10.0, 1.0, 9.0]), (edges, None)):
        for weight, density in ((None, False), (weights, False), (weights, True)):
            counts, found = reference("paddle.histogramdd")(values, bins, ranges, density, weight)
            wanted = torch.histogramdd(values, bins, range=ranges, weight=weight, density=density)
            torch.testing.assert_close(counts, wanted.hist)
            assert all(map(torch.equal, found, wanted.bin_edges))


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("test_"):
            check()
            print(name)
