"""What the wheel says of itself: version, licence, links, types. No wheel needs to be built for this."""

import email
import importlib.util
import os
import re
import subprocess
import sys

import pytest
from tree import ASSAY, ROOT


@pytest.fixture(scope="module")
def pack():
    """tools/wheel/pack.py as a module."""
    spec = importlib.util.spec_from_file_location("pack", ROOT / "tools" / "wheel" / "pack.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def licenses(pack, tmp_path_factory):
    """The folder of licences."""
    folder = tmp_path_factory.mktemp("about") / "licenses"
    pack.copy_licenses(folder)
    return folder


def test_the_version_has_one_source():
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    own = subprocess.check_output(
        [sys.executable, "-c", "import assay; print(assay.__version__)"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")}, text=True,
    )  # fmt: skip
    assert subprocess.check_output([ASSAY, "--version"], text=True) == f"assay {own}"
    assert re.search(rf"^## {re.escape(own.strip())}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_every_licence_goes_along(pack, licenses):
    assert {"LICENSE", "NOTICE", "THIRD_PARTY_NOTICES.md"} <= {path.name for path in licenses.iterdir()}
    notices = (licenses / "THIRD_PARTY_NOTICES.md").read_text()
    for package in pack.linked_packages():
        assert (licenses / package).stat().st_size > 0, package
    for component in ("SQLite", "libpq", "FlatBuffers", "libstdc++", "CUDA runtime"):
        assert component in notices
    for path in licenses.iterdir():
        for name in re.findall(r"common-licenses/([\w.-]*\w)", path.read_text()):
            assert (licenses / f"common-{name}").exists(), f"{path.name} names {name}"


def test_the_metadata_names_licence_links_and_types(pack, licenses):
    said = email.message_from_string(pack.metadata("1.2.3", licenses))
    assert (said["Name"], said["Version"], said["License-Expression"]) == ("assay", "1.2.3", "Apache-2.0")
    assert set(said.get_all("License-File")) == {path.name for path in licenses.iterdir()}
    assert "Typing :: Typed" in said.get_all("Classifier")
    assert {url.split(",")[0] for url in said.get_all("Project-URL")} >= {"Homepage", "Issues", "Changelog"}
    links = re.findall(r"\]\(([^)]*)\)", said.get_payload())
    assert len(links) > 5 and all(link.startswith("https://") for link in links), links


def test_links_become_absolute(pack):
    page = "[a](docs/a.md#b) ![c](c.png) [d](https://d) [e](#e) [![f](f.svg)](f.md)"
    assert pack.absolute_links(page, "https://x/y", "1.0.0") == (
        "[a](https://x/y/blob/v1.0.0/docs/a.md#b) ![c](https://x/y/raw/v1.0.0/c.png) [d](https://d) [e](#e) "
        "[![f](https://x/y/raw/v1.0.0/f.svg)](https://x/y/blob/v1.0.0/f.md)"
    )
