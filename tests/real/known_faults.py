"""What fails by the fault of a framework: Paddle 3.3.1 and PyTorch 2.13.0 on the CPU.

Somebody has looked at each line: at the call itself without assay, or at what assay's float64 truth says of
it (docs/findings tells which). A finding that no line explains (of its API, in this place, in this way,
under these kinds of values) is a false alarm, or a fault that nobody has seen, until somebody has looked.
"""

from typing import Any, NamedTuple

RESULT, GRADIENT, LANE = "result", "gradient of", "lane"
LARGE = frozenset({"wide"})
NAN = frozenset({"nan"})
INF = frozenset({"infinity", "bulk"})
EXACT = frozenset({"exact"})
USUAL = frozenset({"usual"})
SPECIAL = NAN | INF
ALL = frozenset({"usual", "wide", "nan", "infinity", "bulk", "exact", "layout"})


class Fault(NamedTuple):
    why: str
    place: str  # one of RESULT, GRADIENT, LANE; the beginning of a finding's `where`, or its end
    how: str  # a finding's `how`, or words in it where a lane ended
    values: frozenset[str] = USUAL  # under which it may show

    def explains(self, finding: dict[str, Any]) -> bool:
        """`finding` is one of those of `assay report --json`."""
        where, how = finding["where"], finding["how"]
        here = (
            where.endswith(LANE) and self.how in how if self.place == LANE else where.startswith(self.place)
        )
        # A fault of usual values shows under the other regimes too.
        regimes = USUAL <= self.values or set(finding["values"]) <= self.values
        return here and (self.place == LANE or how == self.how) and regimes


def is_known(finding: dict[str, Any]) -> bool:
    return any(fault.explains(finding) for fault in KNOWN_FAULTS.get(finding["api"], ()))


# A tiny float32 becomes float16 garbage, in a cast or in the gradient of a promotion.
_CAST = Fault("tiny numbers become float16 garbage", RESULT, "value", LARGE)
_CAST_BACK = Fault("tiny numbers become float16 garbage", GRADIENT, "value", LARGE)
# Factors, bounds and weights of float64 calls are float32 attributes of the kernels.
_NARROW = Fault("a float64 result with the digits of float32", RESULT, "value", ALL)
_NARROW_BACK = Fault("a float64 gradient with the digits of float32", GRADIENT, "value", ALL)
_CLAMPED = Fault("logits are clamped at 64 below the largest", RESULT, "value", LARGE)
_CLAMPED_BACK = Fault("logits are clamped at 64 below the largest", GRADIENT, "value", LARGE)
_AT_ZERO = Fault("the gradient at a logit of 0", GRADIENT, "value", USUAL | EXACT)
_NO_GRADIENT = Fault("a gradient is lost", GRADIENT, "structure")
_EPSILON = Fault("an epsilon in the gradient", GRADIENT, "value", ALL)
_EMPTY = Fault("the extents of nothing", RESULT, "shape")
_NAN = Fault("NaN is swallowed", RESULT, "not finite", NAN)
_INFINITY = Fault("NaN at an infinity", RESULT, "not finite", INF)
_OVERFLOWS = Fault("e^88 overflows", RESULT, "not finite", LARGE)
_OVERFLOWS_BACK = Fault("e^88 overflows", GRADIENT, "not finite", LARGE)
_QUADRATIC = Fault("the backward is quadratic", LANE, "ran out of time")
_TANGENT = Fault("NaN where the tangent of a complex number is 1i", GRADIENT, "not finite", LARGE)
_DIGITS = Fault("a gradient with ten digits of sixteen", GRADIENT, "value", ALL)
_AT_FACTOR_ZERO = Fault("the gradient at a factor of 0", GRADIENT, "not finite", EXACT | LARGE)
_UNINITIALISED = Fault("uninitialised gradient with an empty kernel", GRADIENT, "value")
_UNINITIALISED_NAN = Fault("uninitialised gradient with an empty kernel", GRADIENT, "not finite")
_WRONG_SHAPE = Fault("a gradient of the wrong shape", GRADIENT, "shape")
_BATCH = Fault("the gradient of a batch", GRADIENT, "value")
_SMALL = Fault("0, NaN or a negative number for what is small", RESULT, "value", ALL)
_SMALL_NAN = Fault("0, NaN or a negative number for what is small", RESULT, "not finite", ALL)
_STRIDED = Fault("a list beyond axis 0 of a strided tensor", LANE, "ValueError", frozenset({"layout"}))

_LAYOUT = frozenset({"layout"})
_STRIDED_ROWS = Fault("a list beyond axis 0 of a strided tensor", RESULT, "value", _LAYOUT)
_STRIDED_NONE = Fault("a mask that is False everywhere of a strided tensor", RESULT, "shape", _LAYOUT)
_NAN_IN_FLOAT8 = Fault("NaN becomes 448 in float8_e4m3fn", RESULT, "not finite", NAN)
_CUBE = Fault("(-inf)^3 is inf in vectors of eight", RESULT, "not finite", INF)
_ONE_AXIS = Fault("one axis for none", RESULT, "shape", ALL)
_OF_VALUE = Fault("the gradient of the value beside that of x", GRADIENT, "value", ALL)

_ROOT = Fault("the root of infinity is NaN in vectors of eight", RESULT, "not finite", INF)
_NEAR = Fault("numbers 1e-16 apart are equal", RESULT, "value", LARGE)

KNOWN_FAULTS: dict[str, tuple[Fault, ...]] = {
    **dict.fromkeys(("paddle.sqrt", "paddle.Tensor.sqrt", "paddle.Tensor.sqrt_"), (_ROOT,)),
    **dict.fromkeys(
        (f"paddle{place}.{name}" for place in ("", ".Tensor") for name in ("equal", "not_equal", "eq", "ne")),
        (_NEAR,),
    ),
    **dict.fromkeys(("paddle.Tensor.half", "paddle.Tensor.float16"), (_CAST, _CAST_BACK)),
    **dict.fromkeys(
        (f"paddle.optimizer.{name}" for name in ("Momentum", "RMSProp", "NAdam", "RAdam")), (_NARROW,)
    ),
    **dict.fromkeys(
        (f"paddle.optimizer.{name}" for name in ("Adam", "AdamW")),
        (Fault("the powers of beta2 in float32", RESULT, "value"),),
    ),
    "paddle.Tensor.__eq__": (_NEAR,),
    "paddle.Tensor.__ne__": (_NEAR,),
    "paddle.Tensor.__floordiv__": (_ONE_AXIS,),
    "paddle.Tensor.__getitem__": (_STRIDED, _STRIDED_ROWS, _STRIDED_NONE),
    "paddle.Tensor.__mul__": (
        _CAST_BACK,
        Fault("a number beyond float16 is rounded to it", RESULT, "not finite"),
    ),
    "paddle.Tensor.__pow__": (_CUBE, _CAST_BACK),
    "paddle.Tensor.__setitem__": (
        Fault("the gradient of a value at a list beyond axis 0", LANE, "died of SIG"),
        Fault("the gradient of a value at a list beyond axis 0", GRADIENT, "value", ALL),
        Fault("the gradient of a value at a list beyond axis 0", GRADIENT, "not finite", ALL),
    ),
    "paddle.Tensor.__truediv__": (_CAST_BACK,),
    "paddle.Tensor.astype": (
        _CAST,
        _NAN_IN_FLOAT8,
        _CAST_BACK,
    ),
    "paddle.Tensor.cast": (
        _CAST,
        _NAN_IN_FLOAT8,
        _CAST_BACK,
    ),
    "paddle.Tensor.diag": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.Tensor.diag_embed": (_NO_GRADIENT,),
    "paddle.Tensor.digamma": (_DIGITS,),
    "paddle.Tensor.erfinv": (
        Fault("an infinity beyond 1, where there is none", RESULT, "not finite", LARGE),
    ),
    "paddle.Tensor.fill_diagonal_tensor": (_NO_GRADIENT,),
    "paddle.Tensor.geometric_": (Fault("no whole numbers", RESULT, "value"),),
    "paddle.Tensor.logsumexp": (_INFINITY,),
    "paddle.Tensor.masked_fill": (_OF_VALUE,),
    "paddle.Tensor.max": (_QUADRATIC,),
    "paddle.Tensor.min": (_QUADRATIC,),
    "paddle.Tensor.prod": (_AT_FACTOR_ZERO,),
    "paddle.Tensor.set_": (
        Fault("PyTorch refuses what lies beyond the memory; Paddle reads it", LANE, "setStorage"),
    ),
    "paddle.Tensor.mean": (Fault("the mean of whole numbers in float32", RESULT, "value", LARGE),),
    "paddle.abs": (Fault("not a fault: the examples have a line with float33", LANE, ""),),
    "paddle.add_n": (_WRONG_SHAPE,),
    "paddle.addmm": (
        _NARROW,
        _NARROW_BACK,
    ),
    **dict.fromkeys(
        ("paddle.acosh", "paddle.asinh"),
        (Fault("NaN where the square overflows", GRADIENT, "not finite", LARGE),),
    ),
    "paddle.gammaln": (_DIGITS,),
    **dict.fromkeys(("paddle.sigmoid", "paddle.nn.functional.sigmoid"), (_OVERFLOWS,)),
    "paddle.erfinv": (Fault("an infinity beyond 1, where there is none", RESULT, "not finite", LARGE),),
    "paddle.multiply": (_CAST_BACK,),
    "paddle.atan2": (_NARROW,),
    "paddle.cast": (
        _CAST,
        _NAN_IN_FLOAT8,
        _CAST_BACK,
    ),
    "paddle.diag_embed": (_NO_GRADIENT,),
    "paddle.diagonal_scatter": (_NO_GRADIENT,),
    "paddle.digamma": (_DIGITS,),
    "paddle.dist": (
        _EPSILON,
        _NARROW,
        _NAN,
    ),
    "paddle.empty": (
        Fault("of an extent of two numbers the first is taken", LANE, "cannot be converted to Scalar"),
    ),
    "paddle.full": (Fault("the shape in a strided tensor", RESULT, "shape", _LAYOUT),),
    "paddle.gammainc": (
        _SMALL,
        _SMALL_NAN,
        Fault("NaN for 0 where the first argument is huge", GRADIENT, "not finite", LARGE),
    ),
    "paddle.gammaincc": (
        _SMALL,
        _SMALL_NAN,
        Fault("NaN for 0 where the first argument is huge", GRADIENT, "not finite", LARGE),
    ),
    "paddle.hypot": (Fault("NaN where the squares overflow", RESULT, "not finite", LARGE),),
    "paddle.incubate.nn.functional.fused_dropout_add": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.incubate.nn.functional.fused_layer_norm": (
        Fault("a residual that does not fit is taken", LANE, "RuntimeError"),
    ),
    "paddle.incubate.nn.functional.swiglu": (
        _OVERFLOWS,
        _OVERFLOWS_BACK,
    ),
    "paddle.isreal": (Fault("a tiny imaginary part is none", RESULT, "value", LARGE),),
    "paddle.kthvalue": (Fault("the gradient of a number is 1", GRADIENT, "value"),),
    "paddle.lerp": (_NO_GRADIENT,),
    "paddle.linalg.eigvalsh": (_BATCH,),
    "paddle.linalg.matrix_norm": (_EPSILON,),
    "paddle.linalg.norm": (
        _NAN,
        _EPSILON,
    ),
    "paddle.linalg.ormqr": (Fault("ones on the diagonal of its input", "the input", "changed"),),
    "paddle.linalg.pinv": (_BATCH,),
    "paddle.linalg.qr": (
        Fault("the backward of nothing", LANE, "in backward"),
        Fault("the backward of nothing", LANE, "died of SIGSEGV"),
    ),
    "paddle.linalg.svdvals": (Fault("the backward of a batch of one", LANE, "in backward"),),
    "paddle.linalg.vector_norm": (
        _EPSILON,
        _NAN,
        Fault("a gradient of the number of elements that are not 0", GRADIENT, "structure"),
    ),
    "paddle.logaddexp": (_INFINITY,),
    "paddle.logcumsumexp": (_NAN,),
    "paddle.logsumexp": (_INFINITY,),
    "paddle.masked_fill": (_OF_VALUE,),
    "paddle.matmul": (
        Fault("whole numbers are multiplied in float32", RESULT, "value", LARGE),
        Fault("the backward of unlike broadcast axes", LANE, "ValueError"),
    ),
    "paddle.max": (_QUADRATIC,),
    "paddle.mean": (Fault("the mean of whole numbers in float32", RESULT, "value", LARGE),),
    "paddle.min": (_QUADRATIC,),
    "paddle.multiplex": (_WRONG_SHAPE,),
    "paddle.nn.functional.adaptive_avg_pool2d": (_NARROW_BACK,),
    "paddle.nn.functional.adaptive_avg_pool3d": (_NARROW_BACK,),
    "paddle.nn.functional.adaptive_log_softmax_with_loss": (
        _CLAMPED,
        _CLAMPED_BACK,
    ),
    "paddle.nn.functional.avg_pool1d": (
        _EMPTY,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.avg_pool2d": (
        _EMPTY,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.avg_pool3d": (
        _EMPTY,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.batch_norm": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.binary_cross_entropy_with_logits": (_AT_ZERO,),
    "paddle.nn.functional.celu": (
        _NARROW,
        _NARROW_BACK,
        Fault("NaN where e^x overflows", GRADIENT, "not finite", LARGE),
    ),
    "paddle.nn.functional.conv1d": (
        _UNINITIALISED,
        _UNINITIALISED_NAN,
        _EMPTY,
    ),
    "paddle.nn.functional.conv2d": (
        _UNINITIALISED,
        _UNINITIALISED_NAN,
        _EMPTY,
    ),
    "paddle.nn.functional.conv3d": (
        _UNINITIALISED,
        _UNINITIALISED_NAN,
        _EMPTY,
    ),
    "paddle.nn.functional.cross_entropy": (
        _CLAMPED,
        _CLAMPED_BACK,
        _NARROW,
        _NARROW_BACK,
        Fault("an ignore_index below 0 is counted by the mean", RESULT, "value", EXACT | LARGE),
        Fault("an ignore_index below 0 is counted by the mean", GRADIENT, "value", EXACT | LARGE),
    ),
    "paddle.nn.functional.embedding": (
        Fault("with sparse=True the padding row has a gradient", GRADIENT, "value", ALL),
    ),
    "paddle.nn.functional.gaussian_nll_loss": (_NO_GRADIENT,),
    "paddle.nn.functional.group_norm": (
        Fault("the gradient where a weight is 0 or small", GRADIENT, "value", EXACT | LARGE),
        Fault("the gradient where a weight is 0 or small", GRADIENT, "not finite", EXACT | LARGE),
        Fault("the gradient without a weight", GRADIENT, "value"),
        Fault("the variance is a difference of squares", RESULT, "value", LARGE),
        Fault("NaN for nothing", GRADIENT, "not finite"),
    ),
    "paddle.nn.functional.hardsigmoid": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.hardswish": (Fault("NaN where 2x overflows", GRADIENT, "not finite", LARGE),),
    "paddle.nn.functional.hardtanh": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.hsigmoid_loss": (Fault("the codes of some classes", RESULT, "value"),),
    "paddle.nn.functional.instance_norm": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.interpolate": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.label_smooth": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.layer_norm": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.leaky_relu": (Fault("0 times -inf is -inf", RESULT, "not finite", INF),),
    "paddle.nn.functional.log_sigmoid": (_INFINITY,),
    "paddle.nn.functional.log_softmax": (
        _CLAMPED,
        _CLAMPED_BACK,
    ),
    "paddle.nn.functional.lp_pool1d": (
        _EMPTY,
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.lp_pool2d": (
        _EMPTY,
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.max_pool2d": (_EMPTY,),
    "paddle.nn.functional.max_pool3d": (_EMPTY,),
    "paddle.nn.functional.maxout": (
        Fault("the least float32 where -inf or a float64 is the largest", RESULT, "value", LARGE | INF),
        Fault("the least float32 where -inf is the largest", RESULT, "not finite", LARGE | INF),
    ),
    "paddle.nn.functional.nll_loss": (
        Fault("ignored labels of images write past the memory", LANE, "died of SIG", EXACT),
        Fault("too many labels are taken", LANE, "multi-target"),
    ),
    "paddle.nn.functional.normalize": (_EPSILON,),
    "paddle.nn.functional.npair_loss": (
        _CLAMPED,
        _CLAMPED_BACK,
    ),
    "paddle.nn.functional.relu": (_NAN,),
    "paddle.nn.functional.rrelu": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.functional.selu": (_NARROW, _NARROW_BACK),
    "paddle.nn.functional.sigmoid_focal_loss": (_AT_ZERO,),
    "paddle.nn.functional.elu": (_NARROW, _NARROW_BACK),
    "paddle.nn.functional.mish": (
        Fault("x times what tanh leaves of 1, five ulps off", GRADIENT, "value", LARGE),
    ),
    "paddle.nn.functional.silu": (_OVERFLOWS_BACK,),
    "paddle.nn.functional.soft_margin_loss": (
        _OVERFLOWS,
        _OVERFLOWS_BACK,
    ),
    "paddle.nn.functional.softmax": (
        _CLAMPED,
        _CLAMPED_BACK,
        Fault("NaN is swallowed, inf - inf as well", RESULT, "not finite", SPECIAL),
    ),
    "paddle.nn.functional.softmax_with_cross_entropy": (
        _CLAMPED,
        _CLAMPED_BACK,
    ),
    "paddle.nn.functional.softshrink": (_INFINITY,),
    "paddle.nn.functional.swish": (
        Fault("e^88 overflows", GRADIENT, "value", LARGE),
        _OVERFLOWS_BACK,
    ),
    "paddle.nn.functional.thresholded_relu": (_INFINITY,),
    "paddle.nn.functional.upsample": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.nn.utils.parameters_to_vector": (_NO_GRADIENT,),
    "paddle.pdist": (
        _NAN,
        _EPSILON,
        Fault("PyTorch dies of SIGFPE of nothing", LANE, "died of SIGFPE"),
    ),
    "paddle.polygamma": (
        Fault("ten digits of sixteen", RESULT, "value", ALL),
        _DIGITS,
    ),
    "paddle.pow": (_CUBE,),
    "paddle.prod": (
        _AT_FACTOR_ZERO,
        Fault("of complex numbers without the conjugate", GRADIENT, "value", USUAL | LARGE | EXACT),
    ),
    "paddle.put_along_axis": (
        _WRONG_SHAPE,
        Fault("mul: result divided by element, where that is 0", GRADIENT, "not finite", EXACT),
    ),
    "paddle.renorm": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.sinc": (
        _NAN,
        Fault("the gradient near 0", GRADIENT, "value", ALL),
        Fault("sin(inf) / inf is 1", RESULT, "value", LARGE),
        Fault("sin(inf) / inf is 1", RESULT, "not finite", LARGE | INF),
    ),
    "paddle.sparse.nn.functional.subm_conv2d": (Fault("reads past the weights", LANE, "died of SIG"),),
    "paddle.sparse.subtract": (Fault("the gradient of unlike places dies", LANE, "died of SIG"),),
    "paddle.sparse.sum": (Fault("the shape of the places of a full sum", RESULT, "shape"),),
    "paddle.sparse.tan": (_TANGENT,),
    "paddle.stanh": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.tan": (_TANGENT,),
    "paddle.vision.ops.generate_proposals": (
        Fault("the extents of nothing", RESULT, "shape, dtype"),
        Fault("sizes of another batch are read past their end", LANE, "died of SIGSEGV"),
    ),
    "paddle.vision.ops.psroi_pool": (
        _NARROW,
        _NARROW_BACK,
    ),
    "paddle.vision.ops.roi_align": (Fault("the gradient of boxes below a pixel", GRADIENT, "value"),),
}
