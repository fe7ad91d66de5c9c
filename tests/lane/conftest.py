import os
import pathlib
import sys

import pytest

# The tables must import where no framework is: as here.
os.environ.pop("ASSAY_FRAMEWORK", None)
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))


@pytest.fixture(scope="session")
def apis():
    """All that the family files register."""
    from assay.registry import load_all

    return load_all()


@pytest.fixture(scope="session")
def root():
    """The folder of the repository."""
    return ROOT


@pytest.fixture
def source():
    """The text of a file of the repository, by its path from the root."""
    return lambda path: (ROOT / path).read_text()
