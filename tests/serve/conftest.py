"""Runs of fake frameworks and their pages."""

import os
import subprocess

import pytest
from fake_runs import Run
from looks import chromium_page
from tree import ASSAY


@pytest.fixture
def run(tmp_path):
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    return Run(tmp_path)


@pytest.fixture
def serve(run):
    """Starts `assay serve` on the run; gives the address that it prints."""
    servers = []

    def start(*words, **environment):
        command = [ASSAY, "serve", run.folder / "run", *words]
        servers.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        )
        return servers[-1].stdout.readline().strip()

    yield start
    for server in servers:
        server.terminate()
        assert server.wait() == 0


@pytest.fixture
def page():
    with chromium_page() as opened:
        yield opened
