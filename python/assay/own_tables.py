"""A user's own API tables: the Python files of the folders that `--apis` or assay.toml names.

They register references with the decorators of assay.registry, as the files of assay.apis do. They run as
part of every lane, so no corpus can name them.
"""

import hashlib
import importlib.util
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

VARIABLE = "ASSAY_APIS"  # folders, separated by colons
KERNEL, REFERENCE = "ASSAY_KERNEL", "ASSAY_KERNEL_REFERENCE"  # FILE.py:NAME each (assay.kernel)


def files() -> list[pathlib.Path]:
    """The files in the order in which they are loaded."""
    folders = filter(None, os.environ.get(VARIABLE, "").split(":"))
    return [file for folder in folders for file in sorted(pathlib.Path(folder).glob("*.py"))]


def load() -> None:
    """Runs the files. Raises whatever a file raises."""
    for file in files():
        if (name := f"assay_own_apis.{file.stem}") in sys.modules:
            raise ImportError(f"{file}: another folder has a file of this name")
        module_of(name, file)


def module_of(name: str, file: pathlib.Path) -> Any:
    """Imports a file under this name. Raises whatever the file raises."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names(tables: Mapping[str, Any]) -> list[str]:
    """The APIs of the tables that the files register."""
    stems = {file.stem for file in files()}
    return [name for name, entry in tables.items() if entry.family in stems]


def identity() -> str:
    """Changes when a file changes, or the kernel; empty without files."""
    kernels = [os.environ[name] for name in (KERNEL, REFERENCE) if name in os.environ]
    found = [*files(), *(pathlib.Path(place.rpartition(":")[0]) for place in kernels)]
    named = [file.name.encode() + b"\0" + file.read_bytes() for file in found]
    digest = hashlib.sha256(b"\0".join([*named, *map(str.encode, kernels)]))
    return digest.hexdigest()[:12] if found else ""
