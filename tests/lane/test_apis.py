"""The family files, as they are registered without any framework."""

import inspect

from assay.names import public_name
from assay.registry import EQUALITIES
from assay.rules import Rule


def test_the_tables_are_there(apis):
    assert len(apis) > 300
    assert "paddle.add" in apis


def test_names_are_public_and_of_paddle(apis):
    for name in apis:
        assert public_name(name, known=True).startswith("paddle.")


def test_rules_and_changes_name_parameters(apis):
    for name, api in apis.items():
        assert set(api.rules) <= {*api.parameters, *api.inputs}, name
        assert not api.changes or api.changes in api.parameters, name
        assert set(api.equal) <= set(EQUALITIES), name


def asked(rule):
    """The functions that a rule asks of a call."""
    parts = (rule,) if callable(rule) else (rule[1:] if isinstance(rule, Rule) else ())
    return [part for part in parts if callable(part)]


def test_rules_ask_for_parameters_only(apis):
    """A name that the API does not have is never given to the rule; one with a default may be shared."""
    wrong = [
        f"{name}: the rule of {parameter} asks for {wanted!r}"
        for name, api in apis.items()
        for parameter, rule in api.rules.items()
        for function in asked(rule)
        for wanted, about in inspect.signature(function).parameters.items()
        if wanted not in (*api.parameters, *api.inputs, *api.aliases, "this")
        and about.kind in (about.POSITIONAL_OR_KEYWORD, about.KEYWORD_ONLY)
        and about.default is about.empty
    ]
    assert wrong == []


def test_grad_functions_ask_for_parameters_only(apis):
    for name, api in apis.items():
        if callable(api.grad):
            assert set(inspect.signature(api.grad).parameters) <= {*api.parameters, "this"}, name


def test_no_gradient_is_left_out_without_a_reason(apis):
    assert [name for name, api in apis.items() if not api.grad] == []
