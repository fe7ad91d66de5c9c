"""Every public definition of the package has a docstring (STYLE.md rule 7)."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "assay"


def methods_of(name, classes):
    """The methods of a class of the package, and of the classes that it is made of."""
    for each in classes.get(name, ()):
        yield from (part.name for part in each.body if isinstance(part, ast.FunctionDef))
        for base in each.bases:
            if getattr(base, "id", name) != name:
                yield from methods_of(base.id, classes)


def undocumented(node, name, classes, inherited=()):
    """The names of public definitions in a module or class that have no docstring."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and part.name[0] != "_":
            if ast.get_docstring(part) is None and part.name not in inherited:
                yield f"{name}.{part.name}"
            if isinstance(part, ast.ClassDef):
                bases = [base.id for base in part.bases if isinstance(base, ast.Name)]
                theirs = {each for base in bases for each in methods_of(base, classes)}
                yield from undocumented(part, f"{name}.{part.name}", classes, theirs)


def test_every_public_definition_has_a_docstring():
    # A reference in apis is described by its API's documentation, and a method by the one that it overrides:
    # their docstrings say only what differs.
    files = [file for file in PACKAGE.rglob("*.py") if "apis" not in file.relative_to(PACKAGE).parts]
    assert len(files) > 40
    trees = {".".join(file.relative_to(PACKAGE).parts): ast.parse(file.read_text()) for file in sorted(files)}
    classes = {}
    for each in (node for tree in trees.values() for node in ast.walk(tree)):
        if isinstance(each, ast.ClassDef):
            classes.setdefault(each.name, []).append(each)
    missing = [name for file, tree in trees.items() for name in undocumented(tree, file, classes)]
    assert missing == []


def test_every_module_has_a_docstring():
    files = sorted(PACKAGE.rglob("*.py"))
    assert [str(file) for file in files if not ast.get_docstring(ast.parse(file.read_text()))] == []
