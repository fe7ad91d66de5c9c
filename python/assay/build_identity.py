"""Which build of a framework this process has imported, and on what machine: two short texts.

A build is known by its version, its commit, the contents of its files, the interpreter, the CUDA version, a
lane's modules, and the environment variables that change what it computes. Two builds of one version
differ in at least one part.

Files are its Python files and libraries, libraries that are loaded from elsewhere, and Python files that
PYTHONPATH has put before or over it. A file is read once; its hash is kept in the user's cache for as long as
its size, times and inode stay the same.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from assay import extensions, own_tables

CACHE_VERSION = 1
JUST_WRITTEN = 1_000_000_000  # ns; a file so young may change again without another time stamp
SKIPPED_FOLDERS = {"__pycache__", "include"}
LIBRARY = re.compile(r"\.so(\.[0-9.]+)?$")
# Variables that change results. Others name folders, devices or logs.
VARIABLES = re.compile(
    r"(FLAGS_|TORCH_|PYTORCH_|ATEN_|CUBLAS_|CUDNN_|TRITON_|NVIDIA_TF32_OVERRIDE$|MKL_CBWR$"
    r"|MKL_ENABLE_INSTRUCTIONS$|(ONEDNN|DNNL)_MAX_CPU_ISA$|XLA_FLAGS$)"
)
ALWAYS_SET = {"FLAGS_use_stride_kernel"}  # by kLaneEnvironment of src/lane/fork_server.cc
SYSTEM = ("/lib", "/usr/lib")  # libraries of the operating system are no part of a build
STANDARD = sysconfig.get_paths()["stdlib"] + os.sep

Stamp = list[int]


def build(framework: Any) -> str:
    """The build of the imported framework, as a comma-separated text. Equal texts mean equal builds."""
    module = sys.modules.get(framework.name)
    parts = [framework.version]
    if commit := _commit(module):
        parts.append(f"commit {commit[:12]}")
    # Loaded libraries have real paths. Without links, an environment is one build under all of its names.
    folders = [os.path.realpath(each) for each in getattr(module, "__path__", ())]
    parts.append(f"files {fingerprint(_named_files(framework, folders), _cache_of(folders))}")
    parts.append(f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}")
    if cuda := _cuda(module):
        parts.append(f"CUDA {cuda}")
    if own := own_tables.identity():
        parts.append(f"own tables {own}")
    if modules := extensions.named(extensions.MODULES) + extensions.named(extensions.IN_LANE):
        parts.append(f"modules {' '.join(modules)}")
    parts += sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if VARIABLES.match(name) and name not in ALWAYS_SET
    )
    return ", ".join(parts)


def machine() -> str:
    """The processor with a hash of its features, the GPUs and their driver."""
    cpu = _first_of_cpuinfo()
    model = cpu.get("model name") or cpu.get("CPU part") or os.uname().machine
    features = cpu.get("flags") or cpu.get("Features") or ""
    parts = [f"{model} (features {_short(hashlib.blake2b(features.encode()))})"]
    gpus = [
        line.split(":", 1)[1].strip()
        for file in sorted(pathlib.Path("/proc/driver/nvidia/gpus").glob("*/information"))
        for line in _text_of(file).splitlines()
        if line.startswith("Model:")
    ]
    parts += [f"{gpus.count(gpu)} x {gpu}" for gpu in sorted(set(gpus))]
    if driver := re.search(r"\b(\d+\.\d+(\.\d+)?)\b", _text_of(pathlib.Path("/proc/driver/nvidia/version"))):
        parts.append(f"driver {driver[1]}")
    return ", ".join(parts)


def fingerprint(files: dict[str, str], cache: pathlib.Path) -> str:
    """A hash of the contents of files {name: path}. `cache` keeps the hash of each file for the next time."""
    kept = _read_cache(cache)
    stamps = {path: stamp for path in files.values() if (stamp := _stamp(path)) is not None}
    hashes = {
        path: kept[path][1] for path, stamp in stamps.items() if path in kept and kept[path][0] == stamp
    }
    fresh = [path for path in stamps if path not in hashes]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        hashes.update(zip(fresh, pool.map(_hash_of, fresh), strict=True))
    if fresh:
        _write_cache(cache, stamps, hashes)
    whole = hashlib.blake2b()
    for name, path in sorted(files.items()):
        whole.update(f"{name}\0{hashes.get(path, '')}\0".encode())
    return _short(whole)


def _named_files(framework: Any, folders: list[str]) -> dict[str, str]:
    ours = os.path.realpath(os.path.dirname(__file__))
    files: dict[str, str] = {}
    for folder in reversed(folders):  # the first folder wins, as in an import
        files.update((path[len(folder) + 1 :], path) for path in _files_under(folder))
    wrapper = getattr(sys.modules[type(framework).__module__], "__file__", None)
    others = [*_mapped_libraries(), *_modules_on_the_path(), *([wrapper] if wrapper else [])]
    for path in others:
        if not os.path.realpath(path).startswith((ours + os.sep, *(folder + os.sep for folder in folders))):
            files[f"/{os.path.basename(path)}"] = path
    return files


def _files_under(folder: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    real = os.path.realpath(folder)
    if real in above:
        return  # a link that leads back
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".py") or LIBRARY.search(entry.name):
            yield entry.path
        elif entry.name not in SKIPPED_FOLDERS and entry.is_dir():
            yield from _files_under(entry.path, (*above, real))


def _mapped_libraries() -> set[str]:
    """Loaded libraries that are neither the system's nor assay's, such as those of the nvidia wheels."""
    lines = _text_of(pathlib.Path("/proc/self/maps")).splitlines()
    paths = {fields[5] for line in lines if len(fields := line.split(None, 5)) == 6}
    return {
        path
        for path in paths
        if LIBRARY.search(path) and not path.startswith((STANDARD, *SYSTEM)) and "assay_native" not in path
    }


def _modules_on_the_path() -> set[str]:
    """Imported files from PYTHONPATH, and site hooks, which may replace a framework's functions."""
    extra = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        hook = name in ("sitecustomize", "usercustomize") and not file.startswith(STANDARD)
        if hook or file.startswith(tuple(folder + os.sep for folder in extra)):
            found.add(file)
    return found


def _commit(module: Any) -> str:
    version = getattr(module, "version", None)
    for name in ("commit", "git_version"):  # PaddlePaddle's and PyTorch's
        if isinstance(commit := getattr(version, name, None), str):
            return commit
    return ""


def _cuda(module: Any) -> str:
    found = getattr(getattr(module, "version", None), "cuda", None)
    with contextlib.suppress(Exception):
        found = found() if callable(found) else found
    return found if isinstance(found, str) and found not in ("False", "None") else ""


def _first_of_cpuinfo() -> dict[str, str]:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", errors="replace") as file:
        pairs = (line.partition(":") for line in iter(file.readline, "\n") if line)
        first = []
        for name, _, value in pairs:
            first.append((name.strip(), value.strip()))
            if len(first) > 100:
                break
        return dict(first)
    return {}


def _text_of(file: pathlib.Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _hash_of(path: str) -> str:
    content = hashlib.blake2b()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                content.update(block)
    except OSError:
        return ""
    return _short(content)


def _short(content: Any) -> str:
    return content.hexdigest()[:16]


def _cache_of(folders: list[str]) -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = _short(hashlib.blake2b("\0".join(folders).encode()))
    return pathlib.Path(cache, "assay", "builds", f"{name}.json")


def _read_cache(cache: pathlib.Path) -> dict[str, tuple[Stamp, str]]:
    """The hashes of an earlier start by path, each with the stamp of the file."""
    try:
        held = json.loads(cache.read_text())
        right = held["v"] == CACHE_VERSION and all(len(entry) == 2 for entry in held["files"].values())
        return held["files"] if right else {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return {}


def _write_cache(cache: pathlib.Path, stamps: dict[str, Stamp], hashes: dict[str, str]) -> None:
    """Keeps the hashes. Without a cache the next start reads the files again."""
    now = time.time_ns()
    kept = {
        path: (stamp, hashes[path]) for path, stamp in stamps.items() if now - max(stamp[1:3]) > JUST_WRITTEN
    }
    with contextlib.suppress(OSError):
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache.parent, delete=False) as file:
            json.dump({"v": CACHE_VERSION, "files": kept}, file)
        os.replace(file.name, cache)
