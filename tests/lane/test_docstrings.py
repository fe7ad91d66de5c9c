"""Every public definition of the package has a docstring (STYLE.md rule 7)."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "assay"


def undocumented(node, name):
    """The names of public definitions in a module or class that have no docstring."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and part.name[0] != "_":
            if ast.get_docstring(part) is None:
                yield f"{name}.{part.name}"
            if isinstance(part, ast.ClassDef):
                yield from undocumented(part, f"{name}.{part.name}")


def test_every_public_definition_has_a_docstring():
    # A reference in apis is described by its API's documentation; its docstring says only what differs.
    files = [file for file in PACKAGE.rglob("*.py") if "apis" not in file.relative_to(PACKAGE).parts]
    assert len(files) > 40
    missing = [
        name
        for file in sorted(files)
        for name in undocumented(ast.parse(file.read_text()), ".".join(file.relative_to(PACKAGE).parts))
    ]
    assert missing == []


def test_every_module_has_a_docstring():
    files = sorted(PACKAGE.rglob("*.py"))
    assert [str(file) for file in files if not ast.get_docstring(ast.parse(file.read_text()))] == []
