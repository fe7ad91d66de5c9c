"""Packs what was built into a wheel: ``pack.py BUILD OUT``.

BUILD is a folder with what was built (``build/wheel/program``), OUT the folder for the wheel. Inside, the
package ``assay`` holds bin/, lib/ and python/ as a checkout does, so that the program finds its parts in
the same way. python/ stands in a folder of its own because lanes put that on the path of *other*
environments, which are to see nothing of this one.

Prints the wheel's name and size. Needs strip and readelf, and the package ``wheel`` (requirements/wheel.txt).
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What every Linux of glibc has, and what every Python with a framework in it has loaded already.
EVERYWHERE = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-x86-64)\.so\.\d+")
OLDEST_TRIED = (2, 31)
LIBRARIES = {
    "assay_native.abi3.so": "lib/assay_native.abi3.so",
    "libassay_injection.so": "src/inject/libassay_injection.so",
    "libassay_cuda.so": "lib/libassay_cuda.so",  # only where it was built
}
METADATA = """Metadata-Version: 2.1
Name: assay
Version: {version}
Summary: Tests deep-learning frameworks the way they are used.
Requires-Python: >=3.10
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """Wheel-Version: 1.0
Generator: assay
Root-Is-Purelib: false
Tag: cp310-abi3-{platform}
"""
ENTRY = "[console_scripts]\nassay = assay.__main__:main\n"
# The package as seen from the environment it is installed in: its modules are in the folder python/.
ELSEWHERE = '\n__path__ = [__path__[0] + "/python/assay"]\n'


def output_of(*command: str | pathlib.Path) -> str:
    """What a program prints; it must succeed."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def platform_of(binaries: list[pathlib.Path]) -> str:
    """The platform tag that these files keep: by the glibc and the libraries they ask for."""
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
    """Without debug information and, in the program, without names."""
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "--strip-unneeded", "-o", target, source], check=True)
    target.chmod(0o755)
    return target


def linked_packages() -> list[str]:
    """Debian's packages of which something is in the program: their licences go along."""
    listed = (ROOT / "tools" / "debian-packages.txt").read_text().split("\n")
    libraries = [
        name for name in listed if re.fullmatch(r"lib.*-dev|libjs-.*|nlohmann-json3-dev|zlib1g-dev", name)
    ]
    ours = [name for name in libraries if not re.search("benchmark|gmock|gtest", name)]
    return [*ours, "libpq-dev", "libssl-dev", "gcc-12-base"]


def fill(tree: pathlib.Path, build: pathlib.Path) -> None:
    """Lays out the wheel's files in ``tree``."""
    package = tree / "assay"
    program = copy_stripped(build / "bin" / "assay", package / "bin" / "assay")
    binaries = [program]
    for name, place in LIBRARIES.items():
        if (build / place).exists():
            binaries.append(copy_stripped(build / place, package / "lib" / name))
        elif "cuda" not in name:
            sys.exit(f"pack: {build / place} is not built")
    shutil.copytree(
        ROOT / "python" / "assay", package / "python" / "assay", ignore=shutil.ignore_patterns("__pycache__")
    )
    own = (ROOT / "python" / "assay" / "__init__.py").read_text()
    (package / "__init__.py").write_text(own + ELSEWHERE)

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
    (about / "METADATA").write_text(METADATA.format(version=version, readme=(ROOT / "README.md").read_text()))
    (about / "WHEEL").write_text(WHEEL.format(platform=platform_of(binaries)))
    (about / "entry_points.txt").write_text(ENTRY)
    (about / "licenses").mkdir()
    for package in linked_packages():
        shutil.copy(f"/usr/share/doc/{package}/copyright", about / "licenses" / package)


def main() -> None:
    """Packs, and says what came of it."""
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
