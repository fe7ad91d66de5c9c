"""Operator traces of others as cases, without a framework."""

import sys

import pytest
from assay.torch_cases.texts import Inexpressible
from assay.torch_cases.traces import case_of, lines_of, main

CASES = {
    ("aten.addmm.default", "((T([8], f16), T([2, 4], f16), T([4, 8], f16, stride=(1, 4))), {})"): (
        'torch.ops.aten.addmm.default(Tensor([8], "float16"), Tensor([2, 4], "float16"), '
        'Tensor([4, 8], "float16", strides=[1, 4]))'
    ),
    ("aten.add.Tensor", "((T([2, 3], bf16, [1, 2]), -1.5), {'alpha': 2})"): (
        'torch.ops.aten.add.Tensor(Tensor([2, 3], "bfloat16", strides=[1, 2]), -1.5, alpha=2)'
    ),
    ("aten._to_copy.default", "((T([], b8),), {'dtype': i32, 'device': \"torch.device('cuda')\"})"): (
        'torch.ops.aten._to_copy.default(Tensor([], "bool"), dtype=Dtype(int32))'
    ),
    (
        "aten.new_zeros.default",
        "((T([4], i64), [2, 3]), {'dtype': torch.uint8, 'layout': torch.strided, 'pin_memory': False})",
    ): (
        'torch.ops.aten.new_zeros.default(Tensor([4], "int64"), list[2, 3], dtype=Dtype(uint8), '
        "layout=torch.strided)"
    ),
    ("aten.index.Tensor", "((T([4, 196], f16), [None, T([9], i64)]), {})"): (
        'torch.ops.aten.index.Tensor(Tensor([4, 196], "float16"), list[None, Tensor([9], "int64")])'
    ),
    ("aten.masked_fill.Scalar", "((T([4], f32), T([4], b8), -inf), {})"): (
        'torch.ops.aten.masked_fill.Scalar(Tensor([4], "float32"), Tensor([4], "bool"), -inf)'
    ),
    ("aten.sum.SymInt", "((T([4, 2], f32), [0], True), {})"): (
        'torch.ops.aten.sum.dim_IntList(Tensor([4, 2], "float32"), list[0], True)'
    ),
    (
        "aten.upsample_bilinear2d_backward.vec",
        "((T([1, 2, 8, 6], f32), None, [1, 2, 4, 3], True, [2.0, 2.0]), {})",
    ): (
        'torch.ops.aten.upsample_bilinear2d_backward.default(Tensor([1, 2, 8, 6], "float32"), list[8, 6], '
        "list[1, 2, 4, 3], True, 2.0, 2.0)"
    ),
    ("aten._foreach_add_.List", "(([T([2], f32), T([3], f32)], [T([2], f32), T([3], f32)]), {})"): (
        'torch.ops.aten._foreach_add_.List(list[Tensor([2], "float32"), Tensor([3], "float32")], '
        'list[Tensor([2], "float32"), Tensor([3], "float32")])'
    ),
    ("aten.gelu.default", "((T([2], f32),), {'approximate': 'tanh'})"): (
        'torch.ops.aten.gelu.default(Tensor([2], "float32"), approximate="tanh")'
    ),
}
UNREADABLE = {
    ("aten.add.Tensor", "((T([2], f32), __import__('os').system('ls')), {})"): "no case has",
    ("aten.add.Tensor", "((T([2], f32), 1)"): "no tuple and dict",
    ("aten.add.Tensor", "((T([2], q8), 1), {})"): "without a shape and a dtype",
    ("aten.add.Tensor", "((T([n], f32), 1), {})"): "whole numbers",
    ("aten.add.Tensor", "((T([2], c32), 1), {})"): "complex32",
    ("aten.add.Tensor", "((ST([2], f32, torch.sparse_coo, True, 1), 1), {})"): "sparse",
    ("aten.add.Tensor", "((T([2], f32), torch.os), {})"): "torch.os",
    (
        "aten.add.Tensor",
        f"({'(' * 3000}",
    ): "no tuple and dict",
    ("os.system('ls')", "((), {})"): "no operator",
}


@pytest.mark.parametrize("line", CASES)
def test_a_line_becomes_a_case(line):
    assert case_of(*line) == CASES[line]


@pytest.mark.parametrize("line", UNREADABLE)
def test_a_line_that_no_case_can_express_says_why(line):
    with pytest.raises(Inexpressible, match=UNREADABLE[line]):
        case_of(*line)


TRACE = """\
Operator: aten.relu.default
cnt: 3, ((T([4], f16),), {})
cnt: 1, ((T([5], f16),), {})
Operator: aten.relu.default
cnt: 2, ((T([4], f16),), {})
cnt: 2, ((ST([4], f16),), {})
what is this
"""


def test_every_line_is_a_case_or_counted(tmp_path, capsys):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "trace.txt").write_text(TRACE)
    (tmp_path / "hash.txt").write_text("0123456789abcdef\n")  # no trace
    (tmp_path / "more.txt").write_text("Operator: aten.neg.default\ncnt: 1, ((T([4], f16),), {})\n")
    assert len(list(lines_of(tmp_path))) == 6
    assert main([str(tmp_path)]) == 0
    cases, said = capsys.readouterr()
    assert len(cases.splitlines()) == 3
    assert "6 calls read, 3 cases; left out: 2 calls" in said
    assert "trace.txt:6: aten.relu.default((ST([4], f16),), {})" in said and "trace.txt:7" in said


def test_a_path_without_calls_is_an_error(tmp_path, capsys):
    (tmp_path / "empty.txt").write_text("")
    assert main([str(tmp_path)]) == 2 and main([str(tmp_path / "none.txt")]) == 2
    said = capsys.readouterr().err
    assert "has no operator call" in said and "No such file" in said


def test_a_parquet_file_needs_pyarrow(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "tests.parquet").write_bytes(b"PAR1")
    assert main([str(tmp_path)]) == 2
    assert "-m pip install pyarrow" in capsys.readouterr().err
