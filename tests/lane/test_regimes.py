"""Value regimes: what they make of an argument's rule, and where nothing is run."""

import pytest
from assay import regimes
from assay.error_bar import ALONE, Inputs, bar_of, terms_of
from assay.regimes import REGIMES, TRAITS, fill_of, skip_of
from assay.rules import Fill
from assay.shared import (
    CONSTANT,
    CORNERS,
    DISTINCT,
    ENDS,
    FEW_TERMS,
    INTEGERS,
    MAGNITUDES,
    MOST_ELEMENTS,
    ROWS,
    UNIFORM,
    WITH_INFINITY,
    WITH_NAN,
)
from assay.spec import TensorSpec


def spec(*shape, dtype="float32", index=0):
    return TensorSpec(shape, dtype, index)


def fill(apis, api, regime, **named):
    first = next(iter(named))
    return fill_of(apis[api], first, named, named[first], regime)


def test_what_is_free_follows_the_regime(apis):
    x = spec(3, 4)
    kinds = {r: fill(apis, "paddle.abs", r, x=x) for r in REGIMES}
    assert kinds["usual"] is None and kinds["layout"] is None
    assert kinds["wide"].kind == MAGNITUDES and kinds["wide"].extent == regimes.BOTH
    assert kinds["nan"].kind == WITH_NAN and kinds["nan"].extent == 4
    assert kinds["infinity"].kind == WITH_INFINITY
    assert kinds["bulk"].kind == CONSTANT and kinds["bulk"].low == float("-inf")
    assert kinds["exact"].kind == CORNERS
    assert kinds["constant"].kind == CONSTANT and -0.5 < kinds["constant"].low < 0.5


def test_what_is_positive_stays_positive(apis):
    x = spec(20)
    assert fill(apis, "paddle.digamma", "wide", x=x).extent == regimes.POSITIVE
    assert fill(apis, "paddle.digamma", "exact", x=x).low > 0


@pytest.mark.parametrize("regime", REGIMES)
def test_indices_stay_what_they_are(apis, regime):
    named = {"x": spec(5, 3), "index": spec(4, dtype="int64", index=1)}
    got = fill_of(apis["paddle.gather"], "index", named, named["index"], regime)
    assert got == Fill(ENDS, 0.0, 5.0, 4)


@pytest.mark.parametrize("api", ["paddle.quantile", "paddle.Tensor.nanquantile"])
def test_what_places_are_computed_of_is_never_nan(apis, api):
    named = {"x": spec(5, 3), "q": spec(index=1), "axis": None}
    assert fill_of(apis[api], "q", named, named["q"], "nan") == Fill(UNIFORM, 0.0, 1.0, 0)
    assert fill_of(apis[api], "x", named, named["x"], "nan").kind == WITH_NAN


def test_whole_numbers_reach_their_dtypes_ends(apis):
    x = spec(9, dtype="int32")
    assert fill(apis, "paddle.abs", "wide", x=x).kind == MAGNITUDES
    assert fill(apis, "paddle.abs", "exact", x=x) == Fill(INTEGERS, -3.0, 4.0, 0)


def test_distinct_whole_numbers_have_other_values_in_each_regime(apis):
    x, small = spec(40, dtype="int64"), spec(40, dtype="int8")
    assert fill(apis, "paddle.sort", "usual", x=x) == Fill(DISTINCT, -40, 40, 40)
    # A float32 or float64 cannot tell these apart.
    assert fill(apis, "paddle.sort", "wide", x=x) == Fill(DISTINCT, 2.0**53, 2.0**53 + 40, 40)
    assert fill(apis, "paddle.sort", "wide", x=small) == Fill(DISTINCT, 88.0, 128.0, 40)
    assert fill(apis, "paddle.sort", "exact", x=small) == Fill(DISTINCT, -40.0, 0.0, 40)
    assert fill(apis, "paddle.sort", "exact", x=spec(9, dtype="uint8")) == Fill(DISTINCT, -9, 9, 9)
    for regime in ("wide", "exact"):
        assert skip_of(apis["paddle.argmin"], {"x": small}, regime) is None
    assert skip_of(apis["paddle.argmin"], {"x": spec(40)}, "exact").reason  # floats have ties
    named = {"x": spec(40, 3), "index": spec(9, dtype="int64", index=1), "axis": 0}
    index = fill_of(apis["paddle.index_fill"], "index", named, named["index"], "wide")
    assert index == fill_of(apis["paddle.index_fill"], "index", named, named["index"], "usual")


def test_whole_divisors_are_never_zero(apis):
    named = {"x": spec(9, dtype="int64"), "y": spec(9, dtype="int64", index=1)}
    for regime in ("wide", "exact"):
        rule = fill_of(apis["paddle.remainder"], "y", named, named["y"], regime)
        assert rule.high <= 0 or rule.low > 0


def test_labels_are_ignored_under_exact_values(apis):
    named = {"input": spec(6, 4), "label": spec(6, dtype="int64", index=1), "ignore_index": 2}
    entry = apis["paddle.nn.functional.cross_entropy"]
    values = fill_of(entry, "label", named, named["label"], "exact").values
    assert values.count(2) >= 2 and max(values) < 4


def test_large_cases_run_under_usual_values_only(apis):
    entry = apis["paddle.abs"]
    assert skip_of(entry, {"x": spec(MOST_ELEMENTS)}, "wide") is None
    assert skip_of(entry, {"x": spec(MOST_ELEMENTS + 1)}, "wide") == regimes.Skip("")
    assert skip_of(entry, {"x": spec(MOST_ELEMENTS + 1)}, "usual") is None


def test_a_regime_that_changes_nothing_is_left_out(apis):
    # No reason, because nothing is lost: labels have no infinities, and probabilities neither.
    losing = {"input": spec(4, 3), "label": spec(4, dtype="int64")}
    assert skip_of(apis["paddle.nn.functional.nll_loss"], losing, "infinity").reason != ""
    assert skip_of(
        apis["paddle.nn.functional.one_hot"], {"x": spec(4, dtype="int64")}, "infinity"
    ) == regimes.Skip("")
    shares = {"input": spec(4), "label": spec(4)}
    assert skip_of(apis["paddle.nn.functional.binary_cross_entropy"], shares, "infinity") == regimes.Skip("")
    assert skip_of(apis["paddle.abs"], {"x": spec(4, dtype="int64")}, "nan") == regimes.Skip("")


def test_listed_values_stay_the_same_with_a_nan_among_them(apis):
    named = {"x": TensorSpec((2, 3), "float32", 0)}
    listed = fill_of(apis["paddle.isnan"], "x", named, named["x"], "usual")
    assert any(value != value for value in listed.values)
    assert skip_of(apis["paddle.isnan"], named, "wide") is not None


def test_every_reason_is_a_sentence_and_names_a_regime():
    for traits in (*TRAITS.values(), regimes.OTHERS):
        assert set(traits.without) <= set(REGIMES) - {"usual"}
        assert all(len(reason) > 20 for reason in traits.without.values())


def test_terms_are_the_depth_of_a_product(apis):
    # [8, 100] x [100, 16]
    assert terms_of(apis["paddle.matmul"], Inputs([800, 1600], 1), 128) == pytest.approx(100)
    assert terms_of(apis["paddle.add"], Inputs([24, 24], 24), 24) == 1
    # The gradient of what was broadcast from 4 elements to 24.
    assert terms_of(apis["paddle.add"], Inputs([24, 4, 24], 24), 4) == 6


def test_a_sum_over_windows_is_never_of_few_terms(apis):
    # The gradient of a weight [6, 4, 3, 3] over images [3, 4, 8, 8] adds up 3 · 8 · 8 = 192 terms.
    for name in ("paddle.nn.functional.conv2d", "paddle.nn.Conv2D"):
        assert terms_of(apis[name], Inputs([6, 216, 768], 8), 216) > FEW_TERMS


def test_where_places_are_computed_the_bar_knows_the_extent(apis):
    assert bar_of(apis["paddle.nn.functional.interpolate"], "usual", Inputs([100], 50), 100)[1] == 50
    # Of one element each: the scale of the others says nothing of it.
    assert bar_of(apis["paddle.abs"], "usual", Inputs([100], 50), 100)[1:] == (0.0, 0.0)
    assert bar_of(apis["paddle.add"], "wide", Inputs([100], 50), 100)[1:] == (0.0, 0.0)
    assert bar_of(apis["paddle.nn.functional.gelu"], "wide", Inputs([100], 50), 100)[1:] == (0.0, 2.0)
    # Without inputs nothing else says how large what was added up is.
    assert bar_of(apis["paddle.linspace"], "usual", Inputs([], 1), 100)[1:] == (1.0, 0.0)
    # What is broadcast is added up in its gradient; a sum keeps its scale.
    assert bar_of(apis["paddle.add"], "usual", Inputs([24, 4, 24], 24), 4)[:2] == (6.0, 1.0)
    assert bar_of(apis["paddle.sum"], "usual", Inputs([100], 50), 100)[1:] == (1.0, 0.0)


def test_a_kronecker_product_adds_nothing_up(apis):
    # [2, 3] x [4, 5]; in the gradient of x twenty terms.
    assert terms_of(apis["paddle.kron"], Inputs([6, 20], 5), 120) == 1
    assert terms_of(apis["paddle.kron"], Inputs([6, 20, 120], 5), 6) == 20


def test_rows_have_as_many_terms_as_elements(apis):
    # [7, 6885, 2] over its last axis; the gradient hangs on the same sums.
    assert terms_of(apis["paddle.norm"], Inputs([96390], 6885), 48195) == 2
    assert terms_of(apis["paddle.norm"], Inputs([96390, 48195], 6885), 96390) == 2
    assert terms_of(apis["paddle.mean"], Inputs([0], 1), 1) == 1


def test_a_loss_by_element_adds_nothing_up(apis):
    loss = apis["paddle.nn.functional.square_error_cost"]
    assert bar_of(loss, "usual", Inputs([400, 400], 400), 400) == (1, 0, 0)
    assert bar_of(apis["paddle.tanh"], "wide", Inputs([9], 9), 9) == (ALONE, 0, 0)
    assert bar_of(apis["paddle.lgamma"], "wide", Inputs([9], 9), 9) == (ALONE, 0, 0.5)
    assert bar_of(apis["paddle.exp"], "wide", Inputs([9], 9), 9, 4.0) == (1, 0, 2)
    assert bar_of(apis["paddle.tanh"], "wide", Inputs([9, 9], 9), 9, 4.0) == (1, 0, 4)
    # 1 - x has the digits of 1.
    assert bar_of(apis["paddle.nn.functional.log_loss"], "usual", Inputs([400, 400], 400), 400) == (1, 0, 1)
    assert terms_of(apis["paddle.nn.functional.mse_loss"], Inputs([400, 400], 400), 1) == 400


def test_exact_sums_are_of_few_terms_where_nothing_is_rounded(apis):
    mean = apis["paddle.mean"]
    assert bar_of(mean, "exact", Inputs([712], 89), 1) == (0, 1, 0)
    assert bar_of(mean, "usual", Inputs([712], 89), 1)[0] == 712
    assert bar_of(mean, "exact", Inputs([712], 89, half=True), 1)[0] == 712
    assert (
        bar_of(mean, "exact", Inputs([712, 1], 89), 712, 4.0)[0] == 712
    )  # its upstream gradient is not exact


def test_a_direct_function_has_no_floor_where_it_is_real(apis):
    assert bar_of(apis["paddle.sin"], "usual", Inputs([100], 100), 100) == (0, 0, 0)
    assert bar_of(apis["paddle.sin"], "usual", Inputs([100], 100, complex=True), 100) == (1, 0, 0.5)
    assert bar_of(apis["paddle.nn.functional.sigmoid"], "usual", Inputs([9, 9], 9), 9, 4.0) == (1, 0, 8)


def test_terms_of_a_result_may_be_said(apis):
    assert bar_of(apis["paddle.sparse.sqrt"], "usual", Inputs([4096], 32), 2048)[0] == 1
    named = {"input": spec(3, 4, 3, 5)}
    loss = apis["paddle.nn.functional.rnnt_loss"]
    assert bar_of(loss, "usual", Inputs([180, 6], 5, named), 1)[0] == 10
    assert bar_of(loss, "usual", Inputs([180, 6, 1], 5, named), 180, 4.0)[0] > 10  # of a gradient
    named = {"x": spec(10, 20), "reduce_op": "max"}
    assert bar_of(apis["paddle.geometric.send_u_recv"], "usual", Inputs([200], 20, named), 200)[0] == 1
    assert bar_of(apis["paddle.geometric.send_u_recv"], "usual", Inputs([200], 20), 200)[0] == 20


def test_data_that_only_moves_keeps_its_bits(apis):
    assert regimes.equalities_of(apis["paddle.concat"], {}, "usual") == ("bits",)
    assert regimes.equalities_of(apis["paddle.add"], {}, "usual") == ()
    assert regimes.equalities_of(apis["paddle.linalg.eig"], {}, "usual") == ("sorted", "value")
    assert regimes.equalities_of(None, {}, "usual") == ()


def test_masks_have_full_and_empty_rows_under_exact_values(apis):
    mask = spec(6, 5, dtype="bool")
    assert fill(apis, "paddle.all", "exact", x=mask) == Fill(ROWS, 0.0, 2.0, 5)
    assert fill(apis, "paddle.all", "exact", x=spec(6, dtype="bool")) is None


def test_constant_values_are_for_long_sums_whatever_their_size(apis):
    def runs(api, *shape):
        return regimes.skip_of(apis[api], {"x": spec(*shape)}, "constant") is None

    assert runs("paddle.mean", 100, 100) and runs("paddle.mean", 1000, 1000)
    assert not runs("paddle.mean", 100) and not runs("paddle.abs", 1000, 1000)
    bar = [bar_of(apis["paddle.sum"], "constant", Inputs([n], n), 1)[0] for n in (40, 2000, 10**8)]
    assert bar == [65, 2000, 4096]


def test_what_an_integer_dtype_cannot_hold_is_not_converted(apis):
    named = {"self": spec(9), "dtype": "uint8"}
    wide = fill_of(apis["paddle.Tensor.astype"], "self", named, named["self"], "wide")
    assert (wide.kind, wide.low, wide.high) == (UNIFORM, 0, 256)
    assert skip_of(apis["paddle.Tensor.astype"], named, "nan").reason
    assert skip_of(apis["paddle.Tensor.astype"], named | {"dtype": "float64"}, "nan") is None


def test_stable_sorting_meets_ties(apis):
    named = {"x": spec(9)}
    assert skip_of(apis["paddle.argsort"], named | {"stable": True}, "exact") is None
    assert skip_of(apis["paddle.argsort"], named, "exact").reason
    assert fill_of(apis["paddle.argsort"], "x", named, named["x"], "exact").kind == CORNERS


def test_singular_values_have_the_error_of_the_largest(apis):
    def scale_of(api, *shape, **named):
        named = {"x": spec(*shape), **named}
        return bar_of(apis[api], "usual", Inputs.of(named), 4)[1]

    assert scale_of("paddle.linalg.svdvals", 4, 4) == 4
    assert scale_of("paddle.linalg.svdvals", 512, 1024) == 16
    assert scale_of("paddle.linalg.norm", 40, 40, p=2, axis=[0, 1]) == 4
    assert scale_of("paddle.linalg.norm", 40, 40, p=2, axis=1) == 1  # a vector norm


@pytest.mark.parametrize(("api", "argument"), [("paddle.cast", "x"), ("paddle.Tensor.astype", "self")])
def test_conversions_that_are_undefined_are_not_judged(apis, api, argument):
    def reason(dtype, to, regime):
        named = {argument: TensorSpec((4,), dtype, 0), "dtype": to}
        skipped = regimes.skip_of(apis[api], named, regime)
        return skipped.reason if skipped else None

    assert "undefined" in reason("float32", "int", "infinity")
    assert "undefined" in reason("complex64", "int32", "wide")
    assert reason("float32", "int", "wide") is None  # drawn within the range
    assert reason("complex64", "float32", "wide") is None


def test_whole_numbers_of_one_sign_reach_reductions_only(apis):
    x = spec(20, dtype="int8")
    assert fill(apis, "paddle.amin", "infinity", x=x) == Fill(INTEGERS, 1.0, 100.0, 0)
    assert fill(apis, "paddle.amax", "bulk", x=x) == Fill(INTEGERS, -100.0, 0.0, 0)
    assert fill(apis, "paddle.amax", "bulk", x=spec(20, dtype="uint8")) is None
    assert skip_of(apis["paddle.abs"], {"x": x}, "infinity") is not None


def test_steps_have_the_same_bits(apis):
    x = spec(20)
    for regime in ("usual", "exact"):
        assert regimes.equalities_of(apis["paddle.round"], {"x": x}, regime) == ("bits",)
        assert regimes.equalities_of(apis["paddle.round"], {"x": x, "decimals": 2}, regime) == ()
    divide = apis["paddle.floor_divide"]
    assert regimes.equalities_of(divide, {"x": x, "y": x}, "exact") == ("bits",)
    assert regimes.equalities_of(divide, {"x": x, "y": x}, "usual") == ()


def test_a_function_of_one_number_does_not_overflow_before_its_result(apis):
    inputs = Inputs.of({"x": spec(20)})
    assert 0 < bar_of(apis["paddle.expm1"], "wide", inputs, 20)[0] < 1
    assert bar_of(apis["paddle.expm1"], "wide", inputs, 20, upstream=4.0)[0] >= 1
