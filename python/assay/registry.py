"""The table of APIs: what assay knows of each API, and how a family file registers it.

One function stands for an API. It has the tested framework's signature and the reference's body, so Python
binds the arguments:

    @api("paddle.gather", index=integers(0, lambda x, axis=0: x.shape[axis]))
    def gather(x, index, axis=0, name=None):
        return torch.index_select(x, axis, index.reshape(-1))

One line is enough if the reference takes the same arguments in the same order:

    same("x, name=None", "paddle.abs paddle.Tensor.abs paddle.exp")
"""

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay import own_tables, reference
from assay.known_deviation import KnownDeviation
from assay.layers import LAYER, Made
from assay.rules import AnyRule
from assay.sparse import is_layout

# How two results are compared:
#   value   elements agree within the tolerance (the default)
#   sign    absolute values agree: eigenvectors, QR, SVD
#   sorted  the same values in any order
#   shape   only shape and dtype
#   bits    the same bits, for APIs that only move data
EQUALITIES = ("value", "sign", "sorted", "shape", "bits")

# What an API makes of its arguments, where that costs much more than reading them (src/schedule/cost.cc):
#   product      a result with the product of the sizes of all arguments
#   expansion    the first tensor, expanded to the list that follows
#   resize       images with the extents in a list
#   matmul, convolution   multiplications of the first tensor with the second
COSTS = ("product", "expansion", "resize", "matmul", "convolution")

# Dunder methods that a case may name. Every other name that starts with an underscore is private to the
# framework and is rejected.
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
    """One API: its reference function, and what is known of its inputs and results (see Registry.api)."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...]
    rules: Mapping[str, AnyRule] = field(default_factory=dict)
    grad: bool | str | Callable[..., bool] = True
    equal: tuple[str, ...] = ()
    changes: str = ""  # the parameter that an in-place call changes; it is compared as the result
    skip: str = ""
    layouts: Mapping[str, Any] = field(default_factory=dict)
    on_cpu: tuple[str, ...] = ()  # parameters whose tensors lie there, whatever the lane's device is
    kind: str = ""  # "layer" or "optimizer": constructed first, then called with `inputs`
    inputs: tuple[str, ...] = ()
    shown: Callable[[Any, dict[str, Any]], Any] | None = None
    family: str = ""  # the file of assay.apis that registers the API
    undefined: Mapping[str, Any] = field(default_factory=dict)
    regimes: Mapping[str, Mapping[str, AnyRule]] = field(default_factory=dict)
    updates: tuple[str, ...] | Callable[..., tuple[str, ...]] = ()
    traits: Mapping[str, Any] = field(default_factory=dict)
    known_deviations: tuple[KnownDeviation, ...] = ()
    ignores: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)  # other names by which rules ask for arguments
    cost: str = ""  # one of COSTS
    own: bool = False  # a name of the reference's framework, which a test lane calls itself
    unreferenced: bool = False  # its reference is itself, and it is no function of the framework's own


class Registry(dict[str, Api]):
    """All APIs by their full name."""

    def __init__(self) -> None:
        super().__init__()
        self._aliases: list[tuple[str, str, str]] = []
        self._likenesses: list[tuple[str, str]] = []
        self._ignored: list[tuple[str, Mapping[str, str]]] = []
        self._derived: list[Callable[[Registry], None]] = []

    def alias(self, of: str, names: str, changes: str = "") -> None:
        """More names of a registered API; they take effect in `settle`."""
        self._aliases += [(of, name, changes) for name in names.split()]

    def ignores(self, reason: str, parameters: str, names: str) -> None:
        """References of these APIs do not read these parameters (assay.ignored); takes effect in `settle`."""
        reasons = dict.fromkeys(parameters.split(), reason)
        self._ignored += [(name, reasons) for name in names.split()]

    def derive(self, register: Callable[["Registry"], None]) -> None:
        """Calls `register` in `settle`, when all other entries are complete."""
        self._derived.append(register)

    def settle(self) -> None:
        """Applies aliases and likenesses after all family files are loaded."""
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
                known_deviations=entry.known_deviations or other.known_deviations,
            )
        self._likenesses.clear()
        for name, reasons in self._ignored:
            self[name] = replace(self[name], ignores={**self[name].ignores, **reasons})
        self._ignored.clear()
        for register in self._derived:
            register(self)
        self._derived.clear()

    def api(self, *names: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator that registers a function as the reference of `names`. Its options are described in
        docs/how-to/add-an-api.md. Others are:

        skip: the reason why cases of this API never run.
        ignores: by parameter that the reference does not read, the reason (assay.ignored). A case with
        another value than the default is unsupported.
        rules: value rules of parameters whose names are options.

        Every other keyword is the value rule of the parameter with that name. Raises ValueError for a name
        that is registered already, a rule of an unknown parameter, or an invalid option.
        """
        family = _caller()

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._enter(names, function, family, **options)
            return function

        return register

    def layer(
        self, *names: str, inputs: str, like: str = "", kind: str = LAYER, **options: Any
    ) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
        """A decorator that registers a function that makes a layer or optimizer as the reference of `names`.

        inputs: the names of the layer's inputs.
        like: the API whose value rules the inputs follow by default.
        options: those of `api`.
        """
        family = _caller()

        def register(function: Callable[..., Made]) -> Callable[..., Made]:
            self._enter(names, function, family, kind=kind, inputs=tuple(inputs.split()), **options)
            if like:
                self._likenesses += [(name, like) for name in names]
            return function

        return register

    def same(self, signature: str, *names: str, home: str = "torch", to: str = "", **options: Any) -> None:
        """Registers APIs whose reference takes the same arguments by position (`paddle.abs`: `torch.abs`).

        signature: the tested framework's signature, such as "x, axis=-1, name=None". All parameters except
        `name` and `out` are passed on by position.
        home: the module of the reference, such as "torch.nn.functional".
        to: the full name of the reference, if its last part differs.
        options: those of `api`.
        """
        family = _caller()
        for name in " ".join(names).split():
            function = _by_position(to or f"{home}.{plain_stem(name)}", signature)
            self._enter((name,), function, family, **options)

    def _enter(
        self,
        names: tuple[str, ...],
        function: Callable[..., Any],
        family: str,
        equal: str | tuple[str, ...] = (),
        changes: str = "",
        layouts: Mapping[str, Any] | None = None,
        rules: Mapping[str, AnyRule] | None = None,
        updates: tuple[str, ...] | Callable[..., tuple[str, ...]] = (),
        known_deviation: KnownDeviation | tuple[KnownDeviation, ...] = (),
        signature: str = "",
        **more: Any,
    ) -> None:
        function = _naming(function, signature) if signature else function
        equal = (equal,) if isinstance(equal, str) else equal
        deviations = (known_deviation,) if isinstance(known_deviation, KnownDeviation) else known_deviation
        parameters = tuple(inspect.signature(function).parameters)
        options = {key: value for key, value in more.items() if key in _OPTIONS and value is not None}
        rules = {key: value for key, value in more.items() if key not in _OPTIONS} | dict(rules or {})
        if options.get("cost", COSTS[0]) not in COSTS:
            raise ValueError(f"{names[0]}: cost={options['cost']!r} must be one of {', '.join(COSTS)}")
        if unknown := set(equal) - set(EQUALITIES):
            raise ValueError(f"{names[0]}: unknown equality: {', '.join(sorted(unknown))}")
        for rule in rules:
            if rule not in parameters and rule not in options.get("inputs", ()):
                raise ValueError(f"{names[0]}: the rule for {rule!r} names no parameter")
        if not callable(updates) and not (isinstance(updates, tuple) and set(updates) <= set(parameters)):
            raise ValueError(f"{names[0]}: updates={updates!r} must be a tuple of parameters")
        for parameter, layout in (layouts or {}).items():
            if parameter not in parameters or not is_layout(layout):
                raise ValueError(f"{names[0]}: {layout!r} is not a layout of the parameter {parameter!r}")
        for name in names:
            if name in self:
                raise ValueError(f"{name} is registered twice")
            changed = changes or (parameters[0] if changes_input(name) else "")
            self[name] = Api(
                name, function, parameters, rules, equal=equal, changes=changed, layouts=layouts or {},
                family=family, updates=updates, known_deviations=deviations, **options,
            )  # fmt: skip


# Options of Registry.api that are stored as they are.
_OPTIONS = frozenset(
    {"grad", "cost", "skip", "shown", "undefined", "regimes", "traits", "kind", "inputs", "ignores"}
)


def _caller() -> str:
    """The name of the family file that calls api(), layer() or same()."""
    frame = sys._getframe(2)
    return frame.f_globals.get("__name__", "").rsplit(".", 1)[-1]


def changes_input(name: str) -> bool:
    """Whether an API of this name changes its first argument: `add_`, `__setitem__`, `__iadd__`."""
    stem = name.rsplit(".", 1)[1]
    if stem.startswith("__"):
        return stem == "__setitem__" or (stem.startswith("__i") and stem not in _NOT_IN_PLACE)
    return stem.endswith("_")


def plain_stem(name: str) -> str:
    """The last part of a name without its in-place form: `add` of `add_`, `__add__` of `__iadd__`."""
    stem = name.rsplit(".", 1)[1]
    if not changes_input(name):
        return stem
    return "__" + stem[3:] if stem.startswith("__i") else stem.removesuffix("_")


_NOT_IN_PLACE = frozenset({"__invert__", "__index__", "__int__", "__iter__"})
# Parameters that a reference does not take: a name, and a tensor for the result.
_IGNORED = ("name", "out")


def signature_of(text: str) -> inspect.Signature:
    """The signature that `text` writes as a `def` does: "x, axis=-1, *, out=None". Defaults are literals."""
    arguments = ast.parse(f"def f({text}): pass").body[0].args
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    places = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(places) - len(arguments.defaults)) + arguments.defaults
    found = [_parameter(place.arg, kind, default) for place, default in zip(places, defaults, strict=True)]
    for place, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(_parameter(place.arg, inspect.Parameter.KEYWORD_ONLY, default))
    return inspect.Signature(found)


def _parameter(name: str, kind: Any, default: ast.expr | None) -> inspect.Parameter:
    value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
    return inspect.Parameter(name, kind, default=value)


def _bound(
    signature: inspect.Signature, ignored: Sequence[str] = ()
) -> Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]:
    """A function that gives the arguments of a call by name, with defaults; TypeError for a wrong call.

    It is some times faster than Signature.bind(). Keyword arguments of `ignored` are dropped."""
    parameters = signature.parameters
    places = [name for name, each in parameters.items() if each.kind is not each.KEYWORD_ONLY]
    defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
    required = frozenset(parameters) - frozenset(defaults)

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(places):
            raise TypeError(f"takes {len(places)} arguments by position, not {len(args)}")
        given = dict(zip(places, args, strict=False))
        for name, value in kwargs.items():
            if name in given or (name not in parameters and name not in ignored):
                raise TypeError(f"unexpected argument {name}")
            if name in parameters:
                given[name] = value
        if missing := required - given.keys():
            raise TypeError(f"missing arguments: {', '.join(sorted(missing))}")
        return defaults | given

    return bind


def _naming(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """A function of this signature that passes on the arguments that `function` names."""
    signature = signature_of(text)
    named = [name for name in inspect.signature(function).parameters if name in signature.parameters]
    bind = _bound(signature)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = bind(args, kwargs)
        return function(**{name: given[name] for name in named})

    call.__signature__ = signature
    call.reads = function
    return call


def _by_position(path: str, text: str) -> Callable[..., Any]:
    """A function of this signature that passes its arguments by position to the function at `path`."""
    signature = signature_of(text)
    passed = [name for name in signature.parameters if name not in _IGNORED]
    bind = _bound(signature, _IGNORED)
    found: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not found:
            found.append(_attribute(reference.torch, path))
        given = bind(args, kwargs)
        return found[0](*[given[name] for name in passed])

    call.__signature__ = signature
    call.reads = passed
    call.path = path
    return call


def _attribute(root: Any, path: str) -> Any:
    for part in path.split(".")[1:]:
        root = getattr(root, part)
    return root


REGISTRY = Registry()
api = REGISTRY.api
alias = REGISTRY.alias
ignores = REGISTRY.ignores
layer = REGISTRY.layer
same = REGISTRY.same


def load_all() -> Registry:
    """The registry after importing every family file of assay.apis and the user's own files."""
    package = importlib.import_module("assay.apis")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"assay.apis.{module.name}")
    own_tables.load()
    REGISTRY.settle()
    return REGISTRY
