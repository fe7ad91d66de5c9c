"""Writes the cases that PyTorch's own OpInfo database describes, one a line.

Each sample is called once under a mode that records which function of PyTorch gets which arguments, so that
OpInfo's wrappers do not matter. Values are dropped: a case has shapes, dtypes and strides (docs/reference/
case-language.md). Samples that no case can express are counted on standard error, by reason.
"""

import argparse
import itertools
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from assay.torch_cases.names import function_of
from assay.torch_cases.texts import Inexpressible, argument_texts, name_of, value_text
from assay.wire import Stop

DTYPES = "float32,float64,bfloat16,float16,complex64,int64"
MOST_ELEMENTS = 1 << 18  # of a tensor
MOST_WITH_OUT = 2  # samples of each dtype that are written with out=, too


def texts(torch: Any, dtypes: list[Any], wanted: re.Pattern[str], left_out: Counter[str]) -> Iterator[str]:
    """The cases of every op that `wanted` finds, in the order of the database."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if not wanted.search(op.name):
            continue
        for dtype in dtypes:
            if dtype in op.supported_dtypes("cpu"):
                yield from _of_samples(torch, op, dtype, left_out)
        yield from _of_errors(torch, op, left_out)


def texts_of_modules(
    torch: Any, dtypes: list[Any], wanted: re.Pattern[str], left_out: Counter[str]
) -> Iterator[str]:
    """The cases of every module of the database, in training mode."""
    from torch.testing._internal.common_modules import module_db

    for info, dtype in itertools.product(module_db, dtypes):
        name = f"torch.nn.{info.module_cls.__name__}"
        if not wanted.search(name) or dtype not in info.dtypes:
            continue
        torch.manual_seed(0)
        samples = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=True)
        for sample in samples:
            try:
                function_of(torch, name)
                numbers: dict[int, int] = {}
                made, call = sample.constructor_input, sample.forward_input
                parts = [
                    argument_texts(
                        torch, made.args, _of_dtype(torch, info.module_cls, made, dtype), numbers, _check
                    ),
                    argument_texts(torch, call.args, call.kwargs, numbers, _check),
                ]
                yield f"{name}({', '.join(parts[0])})({', '.join(parts[1])})"
            except (AttributeError, Stop):
                left_out[f"{name} is no module that a case may construct"] += 1
            except Inexpressible as error:
                left_out[f"{name}: {error}"] += 1


def _of_dtype(torch: Any, make: Any, made: Any, dtype: Any) -> dict[str, Any]:
    """The constructor's arguments for parameters of this dtype."""
    parameters = list(make(*made.args, **made.kwargs).parameters())
    if not parameters or dtype == torch.get_default_dtype() or "dtype" in made.kwargs:
        return dict(made.kwargs)
    try:
        make(*made.args, **made.kwargs, dtype=dtype)
    except TypeError as error:
        raise Inexpressible("its constructor takes no dtype") from error
    return {**made.kwargs, "dtype": dtype}


def _of_samples(torch: Any, op: Any, dtype: Any, left_out: Counter[str]) -> Iterator[str]:
    """The samples of one dtype: the function, its in-place form, and the first ones with out=."""
    torch.manual_seed(0)
    for number, sample in enumerate(_each(op.sample_inputs("cpu", dtype), op, left_out)):
        for function in filter(None, (op.op, op.inplace_variant)):
            with_out = op.supports_out and function is op.op and number < MOST_WITH_OUT
            try:
                yield from _cases(torch, function, sample, with_out)
            except Inexpressible as error:
                left_out[f"{op.name}: {error}"] += 1


def _of_errors(torch: Any, op: Any, left_out: Counter[str]) -> Iterator[str]:
    """The calls that PyTorch must reject."""
    if op.error_inputs_func is None:
        return
    torch.manual_seed(0)
    for error in _each(op.error_inputs("cpu"), op, left_out):
        try:
            yield from _cases(torch, op.op, error.sample_input, False, rejected=True)
        except Inexpressible as reason:
            left_out[f"{op.name}: {reason}"] += 1


def _each(samples: Any, op: Any, left_out: Counter[str]) -> Iterator[Any]:
    """The samples until the database's own code raises."""
    try:
        yield from samples
    except Exception as error:
        left_out[f"{op.name}: its samples raise {type(error).__name__}"] += 1


def _cases(torch: Any, function: Any, sample: Any, with_out: bool, rejected: bool = False) -> Iterator[str]:
    """The one call of PyTorch's functions that the op makes for a sample, and the same call with out=."""
    calls: list[str | Inexpressible] = []
    results: list[Any] = []

    class Recorder(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, called: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            if _is_call(torch, called):
                try:
                    calls.append(_text(torch, called, args, kwargs or {}))
                except Inexpressible as error:
                    calls.append(error)
            results.append(called(*args, **(kwargs or {})))
            return results[-1]

    try:
        with Recorder():
            function(sample.input, *sample.args, **sample.kwargs)
    except Exception as error:
        if not rejected:
            raise Inexpressible(f"its sample raises {type(error).__name__}") from error
    if len(calls) != 1:
        raise Inexpressible(f"calls {len(calls)} functions")
    text = calls[0]
    if isinstance(text, Inexpressible):
        raise text
    yield text
    if with_out and isinstance(results[-1], torch.Tensor) and "out=" not in text:
        yield f"{text[:-1]}, out={value_text(torch, results[-1].contiguous(), {}, _check)})"


def _is_call(torch: Any, called: Any) -> bool:
    """Whether this is more than a look at an attribute."""
    name = torch.overrides.resolve_name(called) or ""
    return not name.endswith(".__get__") and name.rpartition(".")[2] not in ("size", "dim", "stride", "numel")


def _text(torch: Any, called: Any, args: Any, kwargs: Any) -> str:
    name = name_of(torch, called)
    return f"{name}({', '.join(argument_texts(torch, args, kwargs, {}, _check))})"


def _check(value: Any) -> None:
    if 0 in value.stride() and value.numel() > 1:
        raise Inexpressible("a tensor whose elements overlap")
    if value.numel() > MOST_ELEMENTS:
        raise Inexpressible("a large tensor")


def main(arguments: list[str] | None = None) -> int:
    """Writes the cases to standard output. Ends with 2 if this build has no database that can be read."""
    parser = argparse.ArgumentParser(prog="assay corpus opinfo")
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--ops", default="", metavar="REGEX")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of deprecated functions that the database still has
    try:
        import torch
        import torch.testing._internal.common_methods_invocations
        import torch.testing._internal.common_modules

        dtypes = [getattr(torch, name) for name in options.dtypes.split(",")]
        wanted = re.compile(options.ops)
    except (ImportError, AttributeError, re.error) as error:
        hint = "; the OpInfo database needs it: pip install expecttest" if "expecttest" in str(error) else ""
        print(f"error: {error}{hint}", file=sys.stderr)
        return 2
    left_out: Counter[str] = Counter()
    seen = set()
    found = itertools.chain(
        texts(torch, dtypes, wanted, left_out), texts_of_modules(torch, dtypes, wanted, left_out)
    )
    for text in found:
        if text not in seen:
            seen.add(text)
            print(text)
    print(
        f"{len(seen)} cases of torch {torch.__version__}; left out: {left_out.total()} samples",
        file=sys.stderr,
    )
    for reason, number in left_out.most_common():
        print(f"  {number:6}  {reason}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
