"""The formulas of assay.torch_cases.independent_formulas agree with PyTorch's functions.

test_torch_cases.py runs it in a lane's Python, which has PyTorch.
"""

import math
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from assay.registry import REGISTRY, load_all  # noqa: E402
from assay.torch_cases.names import function_of, parameters_of  # noqa: E402
from assay.torch_cases.special_formulas import formula_of  # noqa: E402

load_all()
X = torch.linspace(-5, 5, 24, dtype=torch.float64).reshape(4, 6)
Y = torch.linspace(0.1, 0.9, 24, dtype=torch.float64).reshape(4, 6)
CLASSES = torch.tensor([1, 5, 0, 2])
IMAGE = torch.linspace(-2, 3, 96, dtype=torch.float64).reshape(2, 4, 3, 4)
KNOWN = [
    ("torch.nn.functional.relu", {"input": X, "inplace": False}),
    ("torch.Tensor.relu_", {"self": X}),
    ("torch.sigmoid", {"input": X}),
    ("torch.nn.functional.gelu", {"input": X, "approximate": "tanh"}),
    ("torch.nn.functional.softmax", {"input": X, "dim": 1}),
    ("torch.nn.functional.huber_loss", {"input": X, "target": Y, "delta": 0.7}),
    ("torch.nn.functional.smooth_l1_loss", {"input": X, "target": Y, "beta": 0.7}),
    ("torch.nn.functional.layer_norm", {"input": X, "normalized_shape": [6], "eps": 0.1}),
    ("torch.nn.functional.group_norm", {"input": IMAGE, "num_groups": 2, "eps": 0.1}),
    ("torch.nn.functional.cross_entropy", {"input": X, "target": CLASSES, "ignore_index": 5}),
    ("torch.matmul", {"input": X, "other": Y.mT}),
    ("torch.addmm", {"input": X @ Y.mT, "mat1": X, "mat2": Y.mT, "beta": 0.5, "alpha": 2}),
    (
        "torch.nn.functional.embedding_bag",
        {"input": torch.tensor([[3, 0], [0, 0]]), "weight": X, "mode": "mean"},
    ),
    *(
        (
            "torch.nn.functional.embedding_bag",
            {"input": torch.tensor([3, 0, 2, 1, 1]), "weight": X, "offsets": torch.tensor([0, 2, 4]), **more},
        )
        for more in ({}, {"mode": "sum"})
    ),
    ("torch.addmm", {"input": X * math.nan, "mat1": X, "mat2": Y.mT @ Y, "beta": 0, "alpha": 2}),
    ("torch.baddbmm", {"input": X[None], "batch1": X[None], "batch2": (Y.mT @ Y)[None], "beta": 0.5}),
    ("torch.addmv", {"input": X[:, 0], "mat": X, "vec": Y[0], "beta": 2}),
    ("torch.addr", {"input": X, "vec1": X[:, 0], "vec2": Y[0], "alpha": 3}),
    *((f"torch.special.{name}", {"input": 9 * X}) for name in ("i0", "i0e", "i1", "i1e")),
    ("torch.heaviside", {"input": X.round(), "values": Y}),
    *(
        (f"torch.{name}", {"input": torch.tensor([[1.0, 3, 3, 0, 0], [math.nan, 1, 9, math.nan, 2]]), **more})
        for name in ("argmax", "argmin")
        for more in ({}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"keepdim": True})
    ),
    *(
        (f"torch.special.{name}", {"input": Y})
        for name in "erf erfc erfinv erfcx digamma log_ndtr expm1 log1p exp2 entr logit".split()
    ),
    *(
        (f"torch.special.{name}", {"x" if "scaled" in name else "input": 4 * Y})
        for kind in (
            "bessel_j",
            "bessel_y",
            "modified_bessel_i",
            "modified_bessel_k",
            "scaled_modified_bessel_k",
        )
        for name in (f"{kind}0", f"{kind}1")
    ),
    ("torch.special.airy_ai", {"x": Y}),
    ("torch.special.spherical_bessel_j0", {"x": X}),
    ("torch.xlogy", {"input": Y, "other": 3 * Y}),
    ("torch.special.xlog1py", {"input": Y, "other": 3 * Y}),
    ("torch.special.zeta", {"input": 1 + 3 * Y, "other": Y}),
    ("torch.special.gammainc", {"input": 3 * Y, "other": 2 * Y}),
    ("torch.special.gammaincc", {"input": 3 * Y, "other": 2 * Y}),
    *(
        (f"torch.special.{name}", {"x": Y, "n": torch.arange(24.0).reshape(4, 6).double() / 4 - 1})
        for kind in ("chebyshev_polynomial_t", "chebyshev_polynomial_u")
        for name in (
            kind,
            f"shifted_{kind}",
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    ),
    *(
        ("torch.nn.functional.kl_div", {"input": X, "target": Y, "reduction": each})
        for each in ("mean", "batchmean")
    ),
    ("torch.nn.functional.kl_div", {"input": X, "target": X, "reduction": "sum", "log_target": True}),
    ("torch.nn.functional.binary_cross_entropy", {"input": Y, "target": Y.flip(0), "weight": Y}),
    ("torch.nn.functional.binary_cross_entropy_with_logits", {"input": X, "target": Y, "weight": Y}),
    (
        "torch.nn.functional.margin_ranking_loss",
        {"input1": X, "input2": Y, "target": X.sign(), "margin": 0.2},
    ),
    ("torch.nn.functional.soft_margin_loss", {"input": X, "target": X.flip(0).sign()}),
    (
        "torch.nn.functional.multilabel_soft_margin_loss",
        {"input": X, "target": (Y > 0.5).double(), "weight": Y[0]},
    ),
    *(
        (f"torch.signal.windows.{name}", {"M": 9, "dtype": torch.float64})
        for name in ("hann", "hamming", "blackman", "nuttall")
    ),
    *(
        (f"torch.{name}_window", {"window_length": 8, "dtype": torch.float64})
        for name in ("hann", "hamming", "blackman")
    ),
]
UNKNOWN = [
    ("torch.relu", {"input": torch.ones(3, dtype=torch.complex64)}),
    ("torch.nn.functional.mse_loss", {"input": X, "target": Y, "reduce": False}),
    ("torch.nn.functional.huber_loss", {"input": X, "target": Y, "weight": Y}),
    ("torch.matmul", {"input": X[0], "other": X[0]}),
    ("torch.addmm", {"input": CLASSES[None], "mat1": CLASSES[None], "mat2": CLASSES[:, None], "beta": 0.5}),
]


def test_formulas_agree_with_pytorch():
    for api, arguments in KNOWN:
        function = function_of(torch, api)
        opinion = formula_of(api, parameters_of(torch, api, function))
        given = {name: each.clone() if hasattr(each, "clone") else each for name, each in arguments.items()}
        positional = [given.pop("self")] if "self" in given else []
        right = function(*positional, **given)
        torch.testing.assert_close(opinion(arguments), right, msg=lambda text, api=api: f"{api}: {text}")


def test_formulas_where_pytorch_is_wrong():
    x = torch.tensor([713.0, -713.0], dtype=torch.float64)
    for name, expected in (("i0", 6.7051282636709966729e307), ("i1", 6.7004245591864025018e307)):  # of mpmath
        found = formula_of(f"torch.special.{name}", ("input",))({"input": x}).abs()
        torch.testing.assert_close(found, torch.full_like(x, expected), rtol=1e-13, atol=0)
        leaf = x.clone().requires_grad_()
        of_paddle = REGISTRY[f"paddle.{name}"].call(leaf)
        torch.testing.assert_close(of_paddle.detach().abs(), found, rtol=1e-13, atol=0)
        assert torch.autograd.grad(of_paddle, leaf, torch.ones_like(x))[0].isfinite().all()
    bag = formula_of("torch.nn.functional.embedding_bag", ("input", "weight", "offsets"))
    given = {"input": torch.tensor([0, 1, 2]), "weight": X, "offsets": torch.tensor([0, 2])}
    torch.testing.assert_close(bag(given | {"include_last_offset": True}), X[:2].mean(0, keepdim=True))
    tail = formula_of("torch.special.log_ndtr", ("input",))(
        {"input": torch.tensor([14.0], dtype=torch.float64)}
    )
    torch.testing.assert_close(tail, torch.special.log_ndtr(torch.tensor([14.0]).double()), rtol=1e-9, atol=0)
    nan = formula_of("torch.heaviside", ("input", "values"))({"input": x * math.nan, "values": x})
    assert bool(nan.isnan().all())
    assert bool(REGISTRY["paddle.heaviside"].call(x * math.nan, x).isnan().all())


def test_arguments_that_a_formula_does_not_know():
    for api, arguments in UNKNOWN:
        assert formula_of(api, tuple(arguments))(arguments) is None, api


def test_functions_that_no_formula_knows():
    assert formula_of("torch.sin", ("input",)) is None
    assert formula_of("torch.ops.aten.relu", ("self",)) is None


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name)
