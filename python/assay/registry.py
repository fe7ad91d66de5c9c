"""The table of APIs: what assay knows of each, and how a family file says it.

One function serves an API: it has the tested framework's own signature and the reference's body.
Python binds the arguments; there is no other mapping language.

    @api("paddle.gather", index=integers(0, lambda x, axis=0: x.shape[axis]))
    def gather(x, index, axis=0, name=None):
        return torch.index_select(x, axis, index.reshape(-1))

Where only the name of the framework differs, a line is enough:

    same("x, name=None", "paddle.abs paddle.Tensor.abs paddle.exp")
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay import reference
from assay.accommodations import Accommodation
from assay.layers import LAYER, Made
from assay.rules import AnyRule
from assay.sparse import is_layout

# What makes two results equal where the element itself is not promised.
#   value  the elements agree within the tolerance (the default)
#   sign   their absolute values do: eigenvectors, QR, SVD
#   sorted the same values in any order
#   shape  only shape and dtype are promised
#   bits   nothing is computed, so the bits are the same: data that only moves
EQUALITIES = ("value", "sign", "sorted", "shape", "bits")

# Methods with underscores on both sides that a case may name. Everything else that starts with an
# underscore is private to the framework and is refused.
DUNDERS = frozenset(
    f"__{name}__"
    for name in (
        "abs add and bool complex contains dir div divmod eq float floordiv ge getitem gt iadd iand "
        "ifloordiv ilshift imod imul index int invert ior ipow irshift isub iter itruediv ixor le len long "
        "lshift lt matmul mod mul ne neg nonzero or pos pow radd rand rdiv rdivmod "
        "rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor setitem sub truediv "
        "xor"
    ).split()
)


@dataclass(slots=True, frozen=True, eq=False)
class Api:
    """One API: the reference that stands for it, and what is known of its inputs and results."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...]
    rules: Mapping[str, AnyRule] = field(default_factory=dict)
    grad: bool | Callable[..., bool] = True
    equal: tuple[str, ...] = ()
    no_gradient: str = ""  # why none is compared, where `grad` is False
    changes: str = ""  # works in place: this parameter afterwards is the result
    skip: str = ""
    layouts: Mapping[str, Any] = field(default_factory=dict)  # parameters that are sparse
    kind: str = ""  # "layer" or "optimizer": first made, then called with `inputs`
    inputs: tuple[str, ...] = ()
    # What is compared of the tested framework's own result, made of it and of the arguments by name.
    shown: Callable[[Any, dict[str, Any]], Any] | None = None
    family: str = ""  # the file of assay.apis that it stands in
    undefined: Mapping[str, Any] = field(default_factory=dict)
    regimes: Mapping[str, Mapping[str, AnyRule]] = field(default_factory=dict)
    updates: tuple[str, ...] = ()  # parameters that the call changes beside its result
    traits: Mapping[str, Any] = field(
        default_factory=dict
    )  # where they differ from its family's (regimes.Traits)
    accommodates: tuple[Accommodation, ...] = ()


class Registry(dict[str, Api]):
    """All APIs by their full name."""

    def __init__(self) -> None:
        super().__init__()
        self._aliases: list[tuple[str, str, str]] = []
        self._likenesses: list[tuple[str, str]] = []
        self._reasons: list[tuple[str, str]] = []

    def alias(self, of: str, names: str, changes: str = "") -> None:
        """More names of an API that some family file registers; `settle` enters them."""
        self._aliases += [(of, name, changes) for name in names.split()]

    def no_gradient(self, reason: str, names: str) -> None:
        """Why no gradient of these APIs is compared; `settle` enters it."""
        self._reasons += [(name, reason) for name in names.split()]

    def settle(self) -> None:
        """Enters aliases, likenesses and reasons, once all family files are read."""
        for of, name, changes in self._aliases:
            if name in self:
                raise ValueError(f"{name} is registered twice")
            entry = self[of]
            changed = changes or (entry.parameters[0] if changes_input(name) else "")
            self[name] = replace(entry, name=name, changes=changed)
        self._aliases.clear()
        for name, like in self._likenesses:
            entry, other = self[name], self[like]
            known = {*entry.parameters, *entry.inputs}
            theirs = {key: rule for key, rule in other.rules.items() if key in known}
            self[name] = replace(
                entry,
                rules={**theirs, **entry.rules},
                equal=entry.equal or other.equal,
                accommodates=entry.accommodates or other.accommodates,
            )
        self._likenesses.clear()
        for name, reason in self._reasons:
            if self[name].grad is not False:
                raise ValueError(f"{name}: a reason for no gradient, where one is compared")
            self[name] = replace(self[name], no_gradient=reason)
        self._reasons.clear()

    def api(
        self,
        *names: str,
        grad: bool | Callable[..., bool] = True,
        equal: str | tuple[str, ...] = (),
        skip: str = "",
        changes: str = "",
        layouts: Mapping[str, str | Callable[..., str | None]] | None = None,
        shown: Callable[[Any, dict[str, Any]], Any] | None = None,
        rules: Mapping[str, AnyRule] | None = None,
        undefined: Mapping[str, Any] | None = None,
        regimes: Mapping[str, Mapping[str, AnyRule]] | None = None,
        updates: tuple[str, ...] = (),
        traits: Mapping[str, Any] | None = None,
        accommodates: Accommodation | tuple[Accommodation, ...] = (),
        **more_rules: AnyRule,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Registers the decorated function as the reference of `names`.

        grad: whether gradients are compared (False where an API promises none), or a function of
        the call's arguments, by their names, that says so.
        equal: one of EQUALITIES for all outputs, or a tuple with one for each output.
        skip: a reason why cases of this API are not run at all.
        changes: the parameter that the API changes in place; by default the first one of an API
        whose name says that it works in place.
        layouts: the parameters that are sparse tensors, with one of assay.sparse.LAYOUTS, or a
        pair of one and the number of the case's tensor whose places it takes, or a function of the
        call's arguments that gives either, or None for a dense tensor.
        shown: what is compared of the tested framework's own result, a function of it and of the arguments
        by name: of an object of its own, or of one of many results that are all right.
        undefined: reasons, by value regime (assay.regimes), why nothing is judged there; a function of the
        call's arguments may say so for some calls only.
        updates: parameters that a call changes beside its result, as running statistics are; the reference
        changes them too, and what they hold afterwards is compared.
        traits: fields of regimes.Traits in which the API differs from its family.
        accommodates: where the reference follows Paddle against PyTorch or mathematics, or inputs dodge a
        fault.
        regimes: rules that hold under a value regime only, {regime: {parameter: rule}}.
        Keyword arguments are value rules by parameter name; `rules` takes those whose parameter
        bears the name of an option.
        """
        equal = (equal,) if isinstance(equal, str) else equal
        accommodates = (accommodates,) if isinstance(accommodates, Accommodation) else accommodates
        family = _caller()
        unknown = set(equal) - set(EQUALITIES)
        if unknown:
            raise ValueError(f"{names[0]}: no such equality: {', '.join(sorted(unknown))}")

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            parameters = tuple(inspect.signature(function).parameters)
            all_rules = {**more_rules, **(rules or {})}
            for rule in all_rules:
                if rule not in parameters:
                    raise ValueError(f"{names[0]}: a rule for {rule!r}, which is no parameter of it")
            if not isinstance(updates, tuple) or not set(updates) <= set(parameters):
                raise ValueError(f"{names[0]}: updates={updates!r} are no parameters of it")
            for parameter, layout in (layouts or {}).items():
                if parameter not in parameters or not is_layout(layout):
                    raise ValueError(f"{names[0]}: {parameter!r} cannot be {layout!r}")
            for name in names:
                if name in self:
                    raise ValueError(f"{name} is registered twice")
                changed = changes or (parameters[0] if changes_input(name) else "")
                self[name] = Api(
                    name, function, parameters, all_rules, grad, equal,
                    changes=changed, skip=skip, layouts=layouts or {}, shown=shown, family=family,
                    undefined=undefined or {}, regimes=regimes or {}, updates=updates,
                    accommodates=accommodates, traits=traits or {},
                )  # fmt: skip
            return function

        return register

    def layer(
        self,
        *names: str,
        inputs: str,
        like: str = "",
        kind: str = LAYER,
        grad: bool = True,
        equal: str | tuple[str, ...] = (),
        **rules: AnyRule,
    ) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
        """Registers the decorated function, which makes the layer, as the reference of `names`.

        inputs: the names of what the layer is called with.
        like: the API whose value rules the inputs follow, where `rules` say nothing else.
        """
        equal = (equal,) if isinstance(equal, str) else equal
        family = _caller()

        def register(function: Callable[..., Made]) -> Callable[..., Made]:
            parameters = tuple(inspect.signature(function).parameters)
            for name in names:
                if name in self:
                    raise ValueError(f"{name} is registered twice")
                called = tuple(inputs.split())
                self[name] = Api(
                    name, function, parameters, rules, grad, equal, kind=kind, inputs=called, family=family
                )
                if like:
                    self._likenesses.append((name, like))
            return function

        return register

    def same(
        self,
        signature: str,
        names: str,
        grad: bool = True,
        home: str = "torch",
        undefined: Mapping[str, Any] | None = None,
        regimes: Mapping[str, Mapping[str, AnyRule]] | None = None,
        traits: Mapping[str, Any] | None = None,
        **rules: AnyRule,
    ) -> None:
        """Registers APIs whose reference has the same name (`paddle.abs`: `torch.abs`).

        signature: the tested framework's own, such as "x, name=None"; all parameters but `name`
        (and `out`, which holds nothing but the result) are handed on by position, those left out at
        the end are not handed on.
        home: where the reference lives, such as "torch.nn.functional".
        """
        parameters = [part.split("=")[0].strip() for part in signature.split(",")]
        family = _caller()
        for full_name in names.split():
            function = _by_position(f"{home}.{plain_stem(full_name)}", parameters)
            for rule in rules:
                if rule not in parameters:
                    raise ValueError(f"{full_name}: a rule for {rule!r}, which is no parameter of it")
            if full_name in self:
                raise ValueError(f"{full_name} is registered twice")
            changed = parameters[0] if changes_input(full_name) else ""
            self[full_name] = Api(
                full_name,
                function,
                tuple(parameters),
                rules,
                grad,
                changes=changed,
                family=family,
                undefined=undefined or {},
                regimes=regimes or {},
                traits=traits or {},
            )


def _caller() -> str:
    """The family file that calls api() or same(), or whose helper does."""
    frame = sys._getframe(2)
    return frame.f_globals.get("__name__", "").rsplit(".", 1)[-1]


def changes_input(name: str) -> bool:
    """Whether an API of this name changes its first argument: `add_`, `__setitem__`, `__iadd__`."""
    stem = name.rsplit(".", 1)[1]
    if stem.startswith("__"):
        return stem == "__setitem__" or (stem.startswith("__i") and stem not in _NOT_IN_PLACE)
    return stem.endswith("_")


def plain_stem(name: str) -> str:
    """The last part of a name, of the form that changes nothing: `add` of `add_`, `__add__` of `__iadd__`."""
    stem = name.rsplit(".", 1)[1]
    if not changes_input(name):
        return stem
    return "__" + stem[3:] if stem.startswith("__i") else stem.removesuffix("_")


_NOT_IN_PLACE = frozenset({"__invert__", "__index__", "__int__", "__iter__"})


def _by_position(path: str, parameters: list[str]) -> Callable[..., Any]:
    order = {parameter: position for position, parameter in enumerate(parameters)}
    target: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not target:
            target.append(_attribute(reference.torch, path))
        for ignored in ("name", "out"):
            kwargs.pop(ignored, None)
        values = list(args[: order.get("name")])
        if not kwargs:
            return target[0](*values)
        for keyword, value in sorted(kwargs.items(), key=lambda item: order.get(item[0], 99)):
            if order.get(keyword) != len(values):
                raise TypeError(f"{path}: argument {keyword!r} is unknown, doubled or out of order")
            values.append(value)
        return target[0](*values)

    return call


def _attribute(root: Any, path: str) -> Any:
    for part in path.split(".")[1:]:
        root = getattr(root, part)
    return root


REGISTRY = Registry()
api = REGISTRY.api
alias = REGISTRY.alias
layer = REGISTRY.layer
no_gradient = REGISTRY.no_gradient
same = REGISTRY.same


def load_all() -> Registry:
    """Imports every family file of assay.apis; each registers its APIs."""
    package = importlib.import_module("assay.apis")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"assay.apis.{module.name}")
    REGISTRY.settle()
    return REGISTRY
