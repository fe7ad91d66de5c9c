"""The wheel: what its binaries ask of a machine, and that it works in an environment of its own."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "wheel"
NEWEST_GLIBC = (2, 31)  # Ubuntu 20.04, Debian 11
LARGEST_BYTES = 40_000_000
# Part of each Linux with glibc; the last one of each Python that has loaded a framework.
EVERYWHERE = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|libgcc_s)\.so\.\d+")
STATIC = {"assay-shim"}  # linked without any shared library
pytestmark = pytest.mark.slow
CASE = 'paddle.add(Tensor([2, 3], "float32"), Tensor([2, 3], "float32"))'


@pytest.fixture(scope="module")
def wheel():
    """The file that `make wheel` has made."""
    found = list(FOLDER.glob("assay-*.whl"))
    if not found:
        pytest.skip("no wheel was built: make wheel")
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def files(wheel, tmp_path_factory):
    """The wheel, unpacked."""
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def binaries(files):
    """All ELF files, by the first bytes."""
    found = [path for path in files.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert {"assay", "assay_native.abi3.so", "libassay_injection.so"} <= {path.name for path in found}
    return found


def readelf(option, path):
    """What readelf says of a file."""
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def glibc_versions(path):
    """Those of its symbols: {(2, 17), …}."""
    found = re.findall(r"GLIBC_([\d.]+)", readelf("--dyn-syms", path))
    return {tuple(map(int, text.split("."))) for text in found}


def test_no_binary_asks_for_a_newer_glibc(files):
    for path in binaries(files):
        versions = glibc_versions(path)
        assert bool(versions) == (path.name not in STATIC), path.name
        assert max(versions, default=(0, 0)) <= NEWEST_GLIBC, path.name


def test_no_binary_asks_for_other_libraries(files):
    for path in binaries(files):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))
        assert bool(needed) == (path.name not in STATIC), path.name
        assert [name for name in needed if not EVERYWHERE.fullmatch(name)] == [], path.name
        assert "RUNPATH" not in readelf("-d", path) and "RPATH" not in readelf("-d", path), path.name


def test_the_file_is_small_and_has_no_symbols_for_debuggers(wheel, files):
    assert wheel.stat().st_size <= LARGEST_BYTES
    for path in binaries(files):
        assert ".debug_info" not in readelf("--section-headers", path), path.name


def test_the_known_faults_are_in_it(files):
    def texts(folder):
        return {path.name: path.read_text() for path in folder.iterdir()}

    assert texts(files / "assay" / "lib" / "known_faults") == texts(ROOT / "build/release/lib/known_faults")


def test_the_name_says_where_it_runs(wheel):
    assert re.fullmatch(r"assay-[\d.]+-cp310-abi3-manylinux_2_31_x86_64\.whl", wheel.name)


def test_it_has_every_file_of_the_package(files):
    listed = subprocess.run(
        ["git", "ls-files", "python"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert [name for name in listed if not (files / "assay" / name).is_file()] == []


def test_it_carries_its_licence_and_its_types(files):
    (about,) = files.glob("assay-*.dist-info")
    assert "License-Expression: Apache-2.0" in (about / "METADATA").read_text()
    assert (about / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (files / "assay" / "py.typed").exists() and (files / "assay" / "__init__.pyi").exists()


@pytest.mark.parametrize("minor", range(10, 15))
def test_each_python_takes_it(wheel, tmp_path, minor):
    python = f"python3.{minor}"
    there = shutil.which(python) and subprocess.run([python, "-c", ""], capture_output=True)
    if not there or there.returncode != 0:
        pytest.skip(f"{python} is not installed")
    folder = tmp_path / "packages"
    install = [python, "-m", "pip", "install", "-q", "--no-index", "--target", folder, wheel]
    subprocess.run(install, check=True, timeout=300)
    paths = os.pathsep.join(map(str, (folder, folder / "assay" / "lib")))
    program = "import assay, assay_native, assay.__main__; assay.__main__.main()"
    done = subprocess.run(
        [python, "-c", program, "--version"],
        env=dict(os.environ, PYTHONPATH=paths), cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert re.fullmatch(r"assay [\d.]+\n", done.stdout), done.stderr


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A fresh environment with nothing but the wheel and what .venv/paddle has."""
    paddle = ROOT / ".venv" / "paddle"
    if not paddle.exists():
        pytest.skip("the framework environment is not installed: make setup")
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", wheel], check=True, timeout=300)
    (packages,) = paddle.glob("lib/python3.*/site-packages")
    (own,) = folder.glob("lib/python3.*/site-packages")
    (own / "frameworks.pth").write_text(f"{packages}\n")
    return folder


@pytest.fixture
def bare():
    """The process's environment, without what could help the wheel."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def test_installed_it_finds_the_frameworks_beside_it(environment, bare, tmp_path):
    command = [
        environment / "bin" / "assay", "api", f"--api_config={CASE}",
        "--reference-lane=numpy", "--num_gpus=0",
        f"--log_dir={tmp_path}/run",
    ]  # fmt: skip
    done = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ +1  pass ", done.stdout, re.MULTILINE), done.stdout


def test_installed_doctor_says_what_is_missing(environment, bare, tmp_path):
    command = [environment / "bin" / "python", "-m", "assay", "doctor"]
    done = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    python = re.escape(str(environment / "bin" / "python"))
    assert re.search(rf"ok +paddle \S+ in {python}3?\b", done.stdout), done.stdout
    assert re.search(r"missing  torch", done.stdout) and done.returncode == 1, done.stdout


def test_installed_a_program_can_name_its_steps(environment, bare, tmp_path):
    program = (
        "import assay\nfor step in assay.steps(range(2)):\n  with assay.job('forward'): pass\nprint('ok')"
    )
    command = [environment / "bin" / "python", "-c", program]
    done = subprocess.run(command, env=bare, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr
