"""Runs first in every Python process of a program under `assay capture` or `assay timeline record --watch`.
Waits for the import of a framework and then starts what they do. Python's own sitecustomize, if there is one,
runs as always."""

import importlib
import importlib.abc
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STARTS = {
    "ASSAY_CAPTURE": {
        "torch": "assay.capture.torch_calls",
        "torch._dynamo.eval_frame": "assay.capture.compiled",
        "torch._dynamo.output_graph": "assay.capture.compiled",
        "paddle": "assay.capture.paddle_calls",
    },
    "ASSAY_RECORD_STAGES": {"torch": "assay.timeline.stages"},
}
CHOSEN = {variable: starts for variable, starts in STARTS.items() if os.environ.get(variable)}


class _Loader(importlib.abc.Loader):
    """The framework's loader, and then the start of each."""

    def __init__(self, loader, name):
        self.loader, self.name = loader, name

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        for starts in filter(lambda starts: self.name in starts, CHOSEN.values()):
            try:
                importlib.import_module(starts[self.name]).start(module)
            except Exception as error:
                print(f"assay: {starts[self.name]} cannot start in {self.name}: {error!r}", file=sys.stderr)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a framework where Python would."""

    def find_spec(self, name, path=None, target=None):
        if not any(name in starts for starts in CHOSEN.values()):
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, found), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, name)
        return spec


def _next_sitecustomize():
    """Runs the sitecustomize that this one hides."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != HERE]
    own = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if own is not None:
            sys.modules["sitecustomize"] = own


if CHOSEN:
    package = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
    sys.meta_path.insert(0, _Finder())
    try:
        _next_sitecustomize()
    finally:
        if package not in sys.path:
            sys.path.append(package)
