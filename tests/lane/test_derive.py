"""Cases of sizes that nobody ran, from captures at two sizes."""

import pytest
from assay.torch_cases.derive import candidates, explained, main, resized

SMALL = """\
# assay capture 1 {}
torch.nn.functional.linear(Tensor([2, 64, 48], "float32"), Tensor([96, 48], "float32"))
#: {"calls": 1}
torch.bmm(Tensor([8, 64, 12], "float32", strides=[768, 1, 64]), Tensor([8, 12, 64], "float32"))
torch.nn.functional.softmax(Tensor([8, 64, 64], "float32"), dim=-1)
torch.conv2d(Tensor([2, 3, 64, 64], "float32"), Tensor([4, 3, 3, 3], "float32"), None, list[2, 2], list[1, 1])
torch.relu(Tensor([2, 4, 32, 32], "float32"))
torch.Tensor.__getitem__(Tensor([2, 64], "float32"), tuple(slice(None, None, None), slice(None, -1, None)))
torch.Tensor.view(Tensor([2, 63], "float32"), 126)
torch.mul(Tensor([64, 64], "float32"), 0.125)
torch.mul(Tensor([48, 64], "float32"), 0.125)
"""


def at(size):
    """The same program's capture at another size."""
    text = SMALL.replace("768", str(12 * size)).replace("126", str(2 * (size - 1)))
    text = text.replace("float64", "FLOAT").replace("64", str(size)).replace("FLOAT", "float64")
    return text.replace("63", str(size - 1)).replace("[2, 4, 32, 32]", f"[2, 4, {size // 2}, {size // 2}]")


def lines(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_the_cases_of_another_size_are_those_of_a_real_capture():
    found = list(resized(lines(SMALL), lines(at(96)), 64, 96, 4096))
    assert [reason for _, reason in found] == [""] * len(lines(SMALL))
    assert {text for text, _ in found} == set(lines(at(4096)))


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (7, 7, 7),
        (128, 192, 512),
        (4096, 9216, 65536),
        (63, 95, 255),
        (33, 49, 129),
        (32, 48, 128),
        (100, 131, 286),
        (257, 577, 4097),
        (96 * 257, 96 * 577, 96 * 4097),
    ],
)
def test_formulas(before, after, wanted):
    assert explained(64, 96, 256, str(before), str(after))[1] == str(wanted)


def test_calls_without_a_partner_or_a_formula_are_counted(tmp_path, capsys):
    (tmp_path / "a.txt").write_text(
        'torch.a(Tensor([64], "float32"))\ntorch.b(Tensor([64], "float32"), 0.5)\n'
    )
    (tmp_path / "b.txt").write_text(
        'torch.c(Tensor([96], "float32"))\ntorch.b(Tensor([96], "float32"), 0.25)\n'
    )
    files = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    assert main([*files, "--sizes=64,96", "--size=128"]) == 0
    out, said = capsys.readouterr()
    assert out == "" and said.startswith("4 calls read, 0 cases; left out: 4")
    assert main([*files, "--size=128"]) == 2 and main([*files]) == 2
    assert main([files[0], "--dtype=int3"]) == 2 and main([files[0], "--big=x"]) == 2
    assert "--sizes" in capsys.readouterr().err


def test_candidates_of_a_variant():
    text = 'torch.add(Tensor([4, 3], "float32"), Tensor([4, 3], "float16"), dtype=Dtype(float32))'
    other = 'torch.add(Tensor([4, 3], "bfloat16"), Tensor([4, 3], "bfloat16"), dtype=Dtype(bfloat16))'
    assert list(candidates(text, "dtype", "bfloat16")) == [other]
    assert "strides=[3, 1]" not in text and "strides=[1, 4]" in next(candidates(text, "layout", ""))
    assert next(candidates(text, "broadcast", "")).count("[1, 3]") == 1
    assert next(candidates(text, "zero-size", "")).count("[0, 3]") == 2
    assert next(candidates(text, "big", "5")).count("[20, 3]") == 2
