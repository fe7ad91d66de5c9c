"""What assay knows of a PyTorch function, found by its name.

Value rules and traits come from Paddle's function of the same meaning, which the tables describe: the one
whose reference is this very function, or else the one of the same name. Rules ask for arguments by Paddle's
names; `Named` finds them under PyTorch's.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from assay import kernel, reference
from assay.registry import REGISTRY, Api, changes_input
from assay.spec import RESULT_PLACES
from assay.torch_cases import aten, modules
from assay.torch_cases.draws import TABLE
from assay.torch_cases.likes import FAMILIES, LIKES, SYNONYMS
from assay.torch_cases.names import function_of, is_added, parameters_of
from assay.torch_cases.oracle import Drawn, Oracle
from assay.torch_cases.special_formulas import formula_of
from assay.wire import Stop


class Named(dict[str, Any]):
    """Arguments by PyTorch's names of their parameters; Paddle's names find them too."""

    aliases: Mapping[str, str] = {}

    @classmethod
    def of(cls, named: Mapping[str, Any], aliases: Mapping[str, str]) -> "Named":
        """These arguments with aliases."""
        made = cls(named)
        made.aliases = aliases
        return made

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or super().__contains__(self.aliases.get(str(name)))

    def __missing__(self, name: str) -> Any:
        if name not in self.aliases:
            raise KeyError(name)
        return super().__getitem__(self.aliases[name])

    def get(self, name: str, default: Any = None) -> Any:
        """The argument, or the default."""
        return self[name] if name in self else default


def entry_of(api: str) -> Api | None:
    """What is known of an API: an entry of the tables, or one made for a name of PyTorch's. None if there is
    none, as in a lane of another framework, or for a name that a case may not use."""
    if not api.startswith("torch."):
        return REGISTRY.get(api)
    return None if reference.torch is None else _made(api)


_MERGED = {"rules", "traits", "undefined", "regimes"}  # options of both Paddle's entry and the table count
_CONSISTENCY = "results are judged by consistency with the arguments, which the call overwrites"


@cache
def _made(api: str) -> Api | None:
    torch = reference.torch
    if kernel.is_kernel(api):
        return kernel.entry_of(torch, api)
    try:
        function = function_of(torch, api)
    except (AttributeError, Stop):
        return None  # Functions.own says why
    if api in REGISTRY:  # a reference of a user's own (assay.own_tables)
        return replace(REGISTRY[api], own=True)
    if modules.is_made(api):
        return modules.entry_of(torch, api, function, _made)
    stem = aten.stem_of(api)
    operator, backward = aten.is_operator(api), aten.is_backward(api)
    own = aten.known_of(api) if operator else TABLE.get(api) or TABLE.get(stem) or {}
    parameters = own.get("parameters") or parameters_of(torch, api, function)
    written = aten.written_of(function) if operator else []
    in_place = written[:1] if operator and stem.endswith("_") else parameters[:1] * changes_input(api)
    like = None if "call" in own else like_of(api)
    options: dict[str, Any] = {} if like is None else _options_of(like, parameters)
    first = {"x": "self" if backward and "self" in parameters else parameters[0]} if parameters else {}
    first |= {"axis": "dim"} if "dim" in parameters else {}
    options |= {key: value for key, value in own.items() if key != "parameters"} | {
        **{key: {**options.get(key, {}), **own[key]} for key in _MERGED & own.keys()},
        "aliases": first | options.get("aliases", {}) | own.get("aliases", {}),
    }
    if backward:
        options |= aten.backward_options(options)
    if aten.is_low_level(api):
        options["rules"] = {**aten.BY_PARAMETER, **options.get("rules", {})}
        options["grad"] = aten.BELOW
    if aten.is_internal(api):
        options["undefined"] = {**options.get("undefined", {}), "layout": aten.CHOSEN}
    if in_place and options.pop("shown", None):  # it looks at the arguments before the call
        options["undefined"] = dict.fromkeys(("wide", "nan", "infinity", "bulk", "exact"), _CONSISTENCY)
    if like is None:
        options.setdefault("family", _family_of(api))
        if not options["family"]:  # the shapes do not show what it computes
            options.setdefault("traits", {"chained": True})
    if "running_mean" in parameters and not backward:
        options["updates"] = ("running_mean", "running_var")
    if updated := tuple(name for name in written if name not in (*in_place, *RESULT_PLACES)):
        options["updates"] = updated
    distribution = options.pop("call", None)
    call = (
        Drawn(torch, function, distribution)
        if distribution
        else Oracle(
            torch,
            function,
            stem,
            parameters,
            options.get("updates"),
            formula_of(api, parameters),
            aten.is_low_level(api),
        )  # fmt: skip
    )
    return Api(
        api,
        call,
        parameters,
        changes=in_place[0] if in_place else "",
        own=True,
        unreferenced=is_added(api) and not distribution,
        **options,
    )


def _options_of(like: Api, parameters: tuple[str, ...]) -> dict[str, Any]:
    """What Paddle's entry of the same meaning says, for parameters of these names."""
    aliases = aliases_of(parameters, like.parameters)
    theirs = {own: name for name, own in aliases.items()}
    theirs |= {name: name for name in parameters if name in like.parameters}

    def renamed(rules: Mapping[str, Any]) -> dict[str, Any]:
        return {own: rules[name] for own, name in theirs.items() if name in rules}

    return {
        "rules": renamed(like.rules),
        "family": like.family,
        "grad": like.grad if like.family == "decomposition" else True,
        "undefined": like.undefined,
        "traits": like.traits,
        "equal": like.equal,
        "shown": like.shown and (lambda found, given: like.shown(found, Named.of(given, aliases))),
        "regimes": {regime: renamed(rules) for regime, rules in like.regimes.items()},
        "aliases": aliases,
    }


@cache
def _by_reference() -> dict[str, Api]:
    """Entries of the tables by the path of the PyTorch function that is their reference."""
    return {path: entry for entry in REGISTRY.values() if (path := getattr(entry.call, "path", None))}


def _family_of(api: str) -> str:
    """The family of a function that Paddle lacks."""
    names = aten.names_of(api) if aten.is_operator(api) else (api,)
    return next(filter(None, (FAMILIES.get(name.rpartition(".")[2].rstrip("_")) for name in names)), "")


def like_of(api: str) -> Api | None:
    """The entry of the tables for Paddle's function of the same meaning; None if there is none."""
    if aten.is_operator(api):
        return next(filter(None, map(like_of, aten.names_of(api))), None)
    plain = api[:-1] if changes_input(api) and not api.endswith("__") else api
    tail = plain.partition(".")[2]
    stem = plain.rpartition(".")[2]
    candidates = (
        LIKES.get(plain, LIKES.get(stem)), _by_reference().get(plain), f"paddle.{tail}", f"paddle.{stem}",
        f"paddle.Tensor.{stem}", f"paddle.nn.functional.{stem}", f"paddle.linalg.{stem}",
    )  # fmt: skip
    for candidate in candidates[:1] if {plain, stem} & LIKES.keys() else candidates:
        found = REGISTRY.get(candidate) if isinstance(candidate, str) else candidate
        if found is not None and not found.kind:
            return found
    return None


def aliases_of(own: tuple[str, ...], theirs: tuple[str, ...]) -> dict[str, str]:
    """PyTorch's names of the parameters that Paddle calls otherwise."""
    aliases = {}
    for name in theirs:
        if name in own:
            continue
        found = next((synonym for synonym in SYNONYMS.get(name, ()) if synonym in own), None)
        if found is not None:
            aliases[name] = found
    if theirs and own and theirs[0] not in own and theirs[0] not in aliases:
        aliases[theirs[0]] = own[0]
    return aliases
