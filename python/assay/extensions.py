"""Modules that a framework's processes import after it, such as torch_npu (`modules` of assay.toml).

A process that has opened a device cannot be forked, so the fork server must not import a module that does.
It notices that afterwards: it then starts again, without that module and those behind it, which each lane
imports.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from assay.child import told_by_child

MODULES, IN_LANE = "ASSAY_MODULES", "ASSAY_MODULES_IN_LANE"
FOUND = "ASSAY_MODULES_OPEN"  # the module that has opened a device in an earlier start
DEVICE_FILES = "/dev/nvidia", "/dev/davinci", "/dev/kfd", "/dev/dri/"


class Missing(Exception):
    """A module that cannot be imported."""

    def __init__(self, module: str, cause: BaseException | str) -> None:
        super().__init__(cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}")
        self.module = module


def named(variable: str) -> list[str]:
    """The modules that a variable of the environment names."""
    return list(filter(None, os.environ.get(variable, "").split(":")))


def packages() -> set[str]:
    """The packages of the lane's own modules."""
    return {module.split(".")[0] for module in named(MODULES) + named(IN_LANE)}


def load(framework: Any) -> None:
    """In the fork server: imports its modules. Does not return if one of them has opened a device."""
    before = devices(framework)
    modules = named(MODULES)
    if modules and hasattr(framework, "list_functions"):
        framework.list_functions()
    for at, module in enumerate(modules):
        import_module(module)
        if devices(framework) - before:
            os.environ[MODULES] = ":".join(modules[:at])
            os.environ[IN_LANE] = ":".join(modules[at:] + named(IN_LANE))
            os.environ[FOUND] = module
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    for module in named(IN_LANE):
        try:
            known = importlib.util.find_spec(module)
        except Exception as error:  # the package that should contain it
            raise Missing(module, error) from error
        if known is None:
            raise Missing(module, ModuleNotFoundError(f"No module named {module!r}"))


def import_all() -> None:
    """In a process that is not forked: imports all modules of the lane."""
    for module in named(MODULES) + named(IN_LANE):
        import_module(module)


def load_in_lane() -> None:
    """In a forked lane, once its device is chosen."""
    for module in named(IN_LANE):
        import_module(module)


def kinds(framework: Any) -> list[str]:
    """The device kinds of the build, with those that modules of the lanes register."""
    own = framework.devices() if hasattr(framework, "devices") else ["cpu"]
    if not named(IN_LANE):
        return own

    def look(tell: Callable[[Any], None]) -> None:
        try:
            load_in_lane()
            tell({"kinds": framework.devices() if hasattr(framework, "devices") else own})
        except Missing as error:
            tell({"module": error.module, "why": str(error)})

    told = told_by_child(look)
    if told and "module" in told[0]:
        raise Missing(told[0]["module"], told[0]["why"])
    return told[0]["kinds"] if told else own


def import_module(module: str) -> None:
    """Imports it. Raises Missing with any reason."""
    try:
        importlib.import_module(module)
    except Exception as error:
        raise Missing(module, error) from error


def notes(framework: Any) -> dict[str, str]:
    """Remarks for the user: a module has opened a device, or has replaced kernels of the framework."""
    found = []
    if module := os.environ.get(FOUND):
        found.append(
            f"the module {module} opens a device when it is imported, so each lane imports it "
            f"(modules_in_lane = [{module!r}] in assay.toml saves one start)"
        )
    if kernels := replaced(framework):
        more = f" and {len(kernels) - 3} more" if len(kernels) > 3 else ""
        found.append(
            f"its modules replace kernels of {framework.name}: {', '.join(kernels[:3])}{more}. A reference "
            "lane with the same modules proves nothing: name them in [lanes.NAME], for the test lane"
        )
    return {"": "; ".join(found)} if found else {}


def replaced(framework: Any) -> list[str]:
    """The framework's own operators whose kernels a module has replaced, as far as the framework tells."""
    some = named(MODULES) or named(IN_LANE)
    return framework.replaced() if some and hasattr(framework, "replaced") else []


def devices(framework: Any) -> set[str]:
    """The devices that this process has opened, as far as the framework or the kernel knows."""
    return {*(framework.opened() if hasattr(framework, "opened") else ()), *device_files()}


def device_files() -> Iterator[str]:
    """The files of accelerators that this process has open."""
    for entry in os.listdir("/proc/self/fd"):
        try:
            file = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue  # that of listdir
        if file.startswith(DEVICE_FILES):
            yield file
