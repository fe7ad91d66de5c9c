"""Planted faults, without a framework: each changes what it says and nothing else."""

import math
import random
import struct

import pytest
from assay.mutation.elements import Elements, elements_of
from assay.mutation.faults import FAULTS
from assay.mutation.misread import memory_order
from assay.mutation.score import FATES, one_of, rows
from assay.wire import SKIPPED, Stop


class Call:
    """What a fault sees of a call: its leaves are Elements already."""

    def __init__(self, seed=1):
        self.draw = random.Random(seed)
        self.planted = ""

    def note(self, words):
        self.planted = self.planted or words

    def copy_of(self, value):
        return Elements(value.dtype, value.shape, bytes(value.data)) if isinstance(value, Elements) else None


def floats(*values, dtype="float32", shape=None):
    letter = {"float32": "f", "float64": "d", "float16": "e"}[dtype]
    return Elements(dtype, shape or (len(values),), struct.pack(f"<{len(values)}{letter}", *values))


def whole(*values):
    return Elements("int64", (len(values),), struct.pack(f"<{len(values)}q", *values))


def numbers(elements):
    return [elements.get(place) for place in range(elements.count)]


def result(fault, *leaves, seed=1):
    """The only leaf, changed."""
    ((_, changed),) = FAULTS[fault].results(Call(seed), [("", leaf) for leaf in leaves])
    return changed


def test_one_element_is_off_and_the_others_are_not():
    for fault, share in (("off_5_percent", 0.05), ("off_0.1_percent", 0.001)):
        changed = numbers(result(fault, floats(1.0, 2.0, 4.0, dtype="float64")))
        off = [after / before - 1 for before, after in zip((1.0, 2.0, 4.0), changed, strict=True)]
        assert sorted(off)[:2] == [0, 0] and max(off) == pytest.approx(share)


def test_eight_ulps_are_eight_floats_further():
    assert numbers(result("off_8_ulp", floats(1.0))) == [1 + 8 * 2.0**-23]
    assert numbers(result("off_8_ulp", floats(-2.0, dtype="float64"))) == [-2 - 8 * 2.0**-51]
    largest = (2 - 2.0**-23) * 2.0**127
    assert numbers(result("off_8_ulp", floats(largest))) == [(2 - 9 * 2.0**-23) * 2.0**127]


def test_what_a_right_result_may_be_off_is_no_fault():
    # One ulp is 2^-10 of 1, and 0.001 is more than half of that; of bfloat16 it is 2^-7.
    with pytest.raises(Stop, match="the last 3 places of float16"):
        result("off_0.1_percent", floats(1.0, dtype="float16"))
    leaves = [("x", Elements("bfloat16", (2,), struct.pack("<HH", 0x3F80, 0x3FC0)))]  # 1 and 1.5
    with pytest.raises(Stop, match="the last 3 places of bfloat16"):
        FAULTS["gradient_1.01"].gradients(Call(), leaves)
    one = Elements("bfloat16", (1,), struct.pack("<H", 0x3F80))
    assert result("off_0.1_percent", one).data == one.data
    assert numbers(result("off_5_percent", one)) == [1 + 6 * 2.0**-7]  # 1.05 is 6.4 of them above 1


def test_only_numbers_are_chosen():
    for seed in range(20):
        changed = numbers(result("sign", floats(0.0, math.nan, 3.0, math.inf), seed=seed))
        assert changed[0] == 0 and math.isnan(changed[1]) and changed[2:] == [-3.0, math.inf]


def test_the_choice_hangs_on_the_seed_alone():
    one = floats(*range(1, 50))
    assert result("sign", one, seed=3).data == result("sign", one, seed=3).data
    assert len({bytes(result("sign", one, seed=seed).data) for seed in range(40)}) > 10


def test_nan_becomes_zero():
    assert numbers(result("nan_swallowed", floats(1.0, math.nan))) == [1.0, 0.0]
    with pytest.raises(Stop, match="inapplicable: no NaN") as stop:
        result("nan_swallowed", floats(1.0))
    assert stop.value.status == SKIPPED


def test_the_last_row_is_zeros():
    assert numbers(result("last_row", floats(1.0, 2.0, 3.0, 4.0, shape=(2, 2)))) == [1.0, 2.0, 0.0, 0.0]
    assert numbers(result("last_row", floats(7.0, shape=()))) == [0.0]


def test_whole_numbers_wrap_and_are_off_by_one():
    assert numbers(result("wrapped", whole(2**31, -(2**31) - 1, 5))) == [-(2**31), 2**31 - 1, 5]
    assert numbers(result("off_by_one", whole(2**63 - 1))) == [2**63 - 2]
    assert numbers(result("off_by_one", whole(-(2**63)))) == [-(2**63) + 1]


def test_axes_are_swapped_with_their_elements():
    turned = result("axes", floats(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, shape=(2, 3)))
    assert turned.shape == (3, 2)
    assert numbers(turned) == [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]


def test_a_dtype_keeps_the_values():
    changed = result("dtype", floats(1.5, -2.0))
    assert (changed.dtype, numbers(changed)) == ("float64", [1.5, -2.0])
    assert numbers(result("dtype", whole(2**32 + 3))) == [3]


def test_gradients_are_scaled_lost_and_exchanged():
    leaves = [("x", floats(1.0, 2.0)), ("y", floats(3.0, 5.0))]

    def gradients(fault, seed=1):
        found = FAULTS[fault].gradients(Call(seed), leaves)
        return [None if value is None else numbers(value) for _, value in found]

    assert [1.0, 2.0] in gradients("gradient_1.01") or [3.0, 5.0] in gradients("gradient_1.01")
    assert None in gradients("gradient_lost")
    assert gradients("gradient_of_neighbour") in ([[3.0, 5.0]] * 2, [[1.0, 2.0]] * 2)
    alone = FAULTS["gradient_of_neighbour"].gradients(Call(), [("x", floats(1.0, 2.0, 3.0))])
    assert numbers(alone[0][1]) == [3.0, 1.0, 2.0]


def test_a_zero_gradient_cannot_be_lost():
    with pytest.raises(Stop, match="inapplicable"):
        FAULTS["gradient_lost"].gradients(Call(), [("x", floats(0.0))])


def test_faults_are_those_of_the_command_line(source):
    listed = source("src/wire/settings.h").split("kAllMutants =")[1].split(";")[0]
    assert "".join(part.strip().strip('"') for part in listed.splitlines()).split(",") == list(FAULTS)


def test_a_mutant_is_killed_where_one_kind_of_values_shows_it():
    def fate(*fates):
        trials = [{"fate": fate, "values": str(place)} for place, fate in enumerate(fates)]
        return one_of("paddle.abs()", "sign", trials).fate

    assert fate("survived", "killed", "unjudged") == "killed"
    assert fate("equivalent", "survived", "inapplicable") == "survived"
    assert fate("unjudged", "equivalent") == "equivalent"
    assert {fate(name) for name in FATES} == set(FATES)


def test_a_distribution_or_a_shape_is_told_apart():
    trials = [{"fate": "survived", "values": "usual", "weak": True}, {"fate": "unjudged", "values": "wide"}]
    assert one_of("paddle.randn()", "sign", trials).weak
    assert not one_of("paddle.abs()", "sign", trials[1:]).weak


def test_a_number_of_pythons_own_stays_one():
    class OfFramework:
        tensor_type = bytes

    number = elements_of(OfFramework, 1.5)
    number.put(0, 2 * number.get(0))
    assert number.handed_over() == 3.0


def test_a_score_leaves_out_what_is_no_mutant():
    fates = ("killed", "killed", "killed", "survived", "equivalent", "unjudged")
    mutants = [one_of("paddle.abs()", "sign", [{"fate": fate, "values": "usual"}]) for fate in fates]
    row = rows(mutants, lambda mutant: mutant.fault)["sign"]
    assert (row.made, row.share) == (4, 0.75)


def test_memory_with_reversed_axes_has_another_order():
    rows, columns, planes = 2, 3, 4
    flat = range(rows * columns * planes)
    got = memory_order((rows, columns, planes))
    assert sorted(got) == list(flat) and got[0] == 0
    # In memory the first axis of the tensor is the last one.
    memory = [
        got[(k * columns + j) * rows + i] for i in range(rows) for j in range(columns) for k in range(planes)
    ]
    assert memory == list(flat)


def test_the_second_row_repeats_the_first():
    changed = result("row_repeated", floats(1.0, 2.0, 3.0, 4.0, shape=(2, 2)))
    assert numbers(changed) == [1.0, 2.0, 1.0, 2.0]
    with pytest.raises(Stop):
        result("row_repeated", floats(1.0, 2.0))
