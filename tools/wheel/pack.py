"""Packs what was built into a wheel: ``pack.py BUILD OUT``.

BUILD is the folder of the binaries (``build/wheel/program``), OUT the folder for the wheel. Inside, the
package ``assay`` has bin/, lib/ and python/ as a checkout does, so that the program finds its parts in
the same way. python/ is a folder of its own, because lanes put it on the path of *other* environments,
which must not see the rest of this one.

Prints the wheel's name and size. Needs strip and readelf, and the package ``wheel`` (requirements/wheel.txt).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Libraries of glibc, and libgcc_s, which every Python with a framework has loaded.
EVERYWHERE = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-x86-64)\.so\.\d+")
OLDEST_TRIED = (2, 31)
LIBRARIES = {
    "assay_native.abi3.so": "lib/assay_native.abi3.so",
    "libassay_injection.so": "src/inject/libassay_injection.so",
    "libassay_cuda.so": "lib/libassay_cuda.so",  # optional
}
METADATA = """Metadata-Version: 2.4
Name: assay
Version: {version}
Summary: Tests deep-learning frameworks: APIs, training and inference chains, timelines.
Author: The assay authors
License-Expression: Apache-2.0
{licenses}
Keywords: deep-learning,testing,PaddlePaddle,PyTorch,numerics,TIPC,profiling
Project-URL: Homepage, {repository}
Project-URL: Documentation, {repository}/tree/v{version}/docs
Project-URL: Changelog, {repository}/blob/v{version}/CHANGELOG.md
Project-URL: Issues, {repository}/issues
Classifier: Development Status :: 4 - Beta
Classifier: Environment :: Console
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Intended Audience :: Developers
Classifier: Natural Language :: English
Classifier: Natural Language :: Chinese (Simplified)
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3.10
Classifier: Programming Language :: Python :: 3.11
Classifier: Programming Language :: Python :: 3.12
Classifier: Programming Language :: Python :: 3.13
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Topic :: Software Development :: Testing
Classifier: Typing :: Typed
Requires-Python: >=3.10
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: assay
Root-Is-Purelib: false
Tag: cp310-abi3-{platform}
"""
ENTRY = "[console_scripts]\nassay = assay.__main__:main\n"
# In the environment that assay is installed in, the package's modules are in the folder python/.
ELSEWHERE = '\n__path__ = [__path__[0] + "/python/assay"]\n'


def output_of(*command: str | pathlib.Path) -> str:
    """What a program prints; it must succeed."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def platform_of(binaries: list[pathlib.Path]) -> str:
    """The platform tag of these files: by the glibc and the other libraries that they need."""
    newest = OLDEST_TRIED
    for binary in binaries:
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", binary))
        others = [name for name in needed if not EVERYWHERE.fullmatch(name)]
        if others:
            print(f"note: {binary.name} needs {', '.join(others)}: this wheel is for machines like this one")
            return "linux_x86_64"
        versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", output_of("readelf", "-VW", binary))
        newest = max(newest, *((int(major), int(minor)) for major, minor in versions))
    return f"manylinux_{newest[0]}_{newest[1]}_x86_64"


def copy_stripped(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Copies a binary without debug information and without local symbols; returns its new path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "--strip-unneeded", "-o", target, source], check=True)
    target.chmod(0o755)
    return target


def linked_packages() -> list[str]:
    """The Debian packages whose code is in the program."""
    listed = (ROOT / "tools" / "debian-packages.txt").read_text().split("\n")
    libraries = [name for name in listed if re.fullmatch(r"lib.*-dev|nlohmann-json3-dev|zlib1g-dev", name)]
    ours = [name for name in libraries if not re.search("benchmark|gmock|gtest", name)]
    return [*ours, "libpq-dev", "libssl-dev", "gcc-12-base"]


def absolute_links(text: str, repository: str, version: str) -> str:
    """A Markdown page of the root whose links also work where the repository is not: as absolute ones."""
    at = f"{repository}/{{}}/v{version}/"
    text = re.sub(r"(!\[[^\]]*\]\()(?!\w+:|#)", rf"\g<1>{at.format('raw')}", text)
    return re.sub(r"(\]\()(?!\w+:|#)", rf"\g<1>{at.format('blob')}", text)


def copy_licenses(folder: pathlib.Path) -> None:
    """assay's own licence and notices, each library's copyright file, and the licences that these name."""
    folder.mkdir()
    for name in ("LICENSE", "NOTICE", "THIRD_PARTY_NOTICES.md"):
        shutil.copy(ROOT / name, folder / name)
    named = set()
    for package in linked_packages():
        copied = shutil.copy(f"/usr/share/doc/{package}/copyright", folder / package)
        named |= set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", pathlib.Path(copied).read_text()))
    for name in named:
        shutil.copy(f"/usr/share/common-licenses/{name}", folder / f"common-{name}")


def metadata(version: str, licenses: pathlib.Path) -> str:
    """The file METADATA of the wheel."""
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["assay"]["repository"]
    files = sorted(path.name for path in licenses.iterdir())
    return METADATA.format(
        version=version,
        repository=repository,
        licenses="\n".join(f"License-File: {name}" for name in files),
        readme=absolute_links((ROOT / "README.md").read_text(), repository, version),
    )


def fill(tree: pathlib.Path, build: pathlib.Path) -> None:
    """Lays out the wheel's files in ``tree``."""
    package = tree / "assay"
    program = copy_stripped(build / "bin" / "assay", package / "bin" / "assay")
    binaries = [program]
    copy_stripped(build / "bin" / "assay-shim", package / "bin" / "assay-shim")
    for name, place in LIBRARIES.items():
        if (build / place).exists():
            binaries.append(copy_stripped(build / place, package / "lib" / name))
        elif "cuda" not in name:
            sys.exit(f"pack: {build / place} is not built")
    shutil.copytree(
        ROOT / "python" / "assay", package / "python" / "assay", ignore=shutil.ignore_patterns("__pycache__")
    )
    lists = package / "lib" / "known_faults"
    subprocess.run([sys.executable, ROOT / "tools" / "findings", "lists", lists], check=True)
    own = (ROOT / "python" / "assay" / "__init__.py").read_text()
    (package / "__init__.py").write_text(own + ELSEWHERE)
    for typing in ("__init__.pyi", "py.typed"):
        shutil.copy(ROOT / "python" / "assay" / typing, package / typing)

    version = output_of(program, "--version").split()[-1]
    shared = tree / f"assay-{version}.data" / "data" / "share"
    for place, verb in {
        "bash-completion/completions/assay": "completion",
        "man/man1/assay.1": "manual",
    }.items():
        (shared / place).parent.mkdir(parents=True)
        (shared / place).write_text(output_of(program, verb))
    about = tree / f"assay-{version}.dist-info"
    about.mkdir()
    copy_licenses(about / "licenses")
    (about / "METADATA").write_text(metadata(version, about / "licenses"))
    (about / "WHEEL").write_text(WHEEL.format(platform=platform_of(binaries)))
    (about / "entry_points.txt").write_text(ENTRY)


def main() -> None:
    """Packs the wheel and prints its name and size."""
    build, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        fill(tree, build)
        for old in out.glob("assay-*.whl"):
            old.unlink()
        subprocess.run(
            [sys.executable, "-m", "wheel", "pack", "-d", out, tree], check=True, stdout=subprocess.DEVNULL
        )
    (wheel,) = out.glob("assay-*.whl")
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
