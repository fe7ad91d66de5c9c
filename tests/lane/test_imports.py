"""The modules of the lane import each other in one direction only."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "assay"


def imported_modules(file: Path, modules: set[str]) -> set[str]:
    """The modules of the package that `file` imports anywhere, also inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found & modules


def test_no_import_goes_in_a_circle():
    files = {
        "assay." + ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): file
        for file in PACKAGE.rglob("*.py")
    }
    graph = {name: imported_modules(file, set(files)) - {name} for name, file in files.items()}
    assert graph["assay.call"]  # the graph is really read
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
