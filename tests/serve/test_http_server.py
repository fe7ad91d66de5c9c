"""Access control and limits of the HTTP server of `assay serve` and `assay timeline open`."""

import http.client
import re
import resource
import socket
import subprocess
import time

import pytest
from fake_runs import Run
from tree import ASSAY


class Server:
    """One of the two programs that serve HTTP."""

    def __init__(self, kind, descriptors, folder):
        if kind == "serve":
            Run(folder).go(["echo"], size=3)
            command = [ASSAY, "serve", folder / "run"]
        else:
            (folder / "trace").write_bytes(b"trace")
            command = [ASSAY, "timeline", "open", folder / "trace", "--port=0"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
        )
        printed = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/([^/&\s]*)/?(trace)?", printed)
        self.port = int(found[1])
        self.content = "/data.json" if kind == "serve" else "/trace"
        self.path = f"/{found[2]}{self.content}"

    def ask(self, path, host=None, **headers):
        """The response to GET, with its body in `body`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest("GET", path, skip_host=True)
        for name, value in {"Host": host or f"127.0.0.1:{self.port}", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        response.body = response.read()
        connection.close()
        return response

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


# The limit of 64 descriptors is below the server's own limit of connections.
@pytest.fixture(params=[("serve", 256), ("open", 64)], ids=["serve", "open"])
def server(request, tmp_path):
    if not ASSAY.exists():
        pytest.skip("assay is not built: make build")
    started = Server(*request.param, tmp_path)
    yield started
    started.process.terminate()
    assert started.process.wait(timeout=10) == 0


def test_only_addresses_and_localhost_are_hosts(server):
    for host in ("127.0.0.1", f"localhost:{server.port}", "[::1]:80"):
        assert server.ask(server.path, host).status == 200, host
    for host in ("127.evil.example", "localhost.evil.example", "evil.example"):
        assert server.ask(server.path, host).status == 403, host


def test_content_needs_the_token(server):
    assert server.ask(server.path).status == 200
    for path in (server.content, f"/{'0' * 32}{server.content}", f"{server.content}?token="):
        assert server.ask(path).status == 403, path


def test_browsers_get_strict_headers(server):
    for path in (server.path, "/unknown"):
        headers = server.ask(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_600_idle_connections_keep_nobody_out(server):
    idle = [server.connect() for _ in range(600)]
    for _ in range(3):
        begin = time.monotonic()
        assert server.ask(server.path).status == 200
        assert time.monotonic() - begin < 5
    for each in idle:
        each.close()


@pytest.mark.slow
def test_a_request_has_a_limit_of_time_and_size(server):
    slow = server.connect()
    slow.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    begin = time.monotonic()
    assert slow.recv(100) == b""
    assert time.monotonic() - begin < 15
    long = server.connect()
    try:
        for _ in range(64):
            long.sendall(b"X: " + b"x" * 1000 + b"\r\n")
        assert long.recv(100)[:12] in (b"HTTP/1.1 431", b"")
    except ConnectionError:
        pass  # closed while more was sent
    assert server.process.poll() is None
