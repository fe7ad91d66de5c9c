"""The page of `assay serve` under many idle connections: its latency, descriptors and memory.

python bench/serve/many_connections.py build/release/bin/assay RUN [--connections=10000] [--descriptors=1024]
"""

import argparse
import http.client
import pathlib
import re
import resource
import socket
import subprocess
import threading
import time


def main():
    """Opens the connections, each with half a request, while another client asks for the page's data."""
    parser = argparse.ArgumentParser()
    parser.add_argument("assay")
    parser.add_argument("run")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--descriptors", type=int, default=1024, help="limit of the server")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, options.connections + 100), most))
    limit = (options.descriptors, options.descriptors)
    server = subprocess.Popen(
        [options.assay, "serve", options.run],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
    )
    port, token = re.search(r"127\.0\.0\.1:(\d+)/([^/\s]+)", server.stdout.readline()).groups()
    times, failures, over = [], [], threading.Event()

    def ask():
        while not over.wait(0.05):
            begin = time.monotonic()
            try:
                connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
                connection.request("GET", f"/{token}/data.json")
                assert connection.getresponse().read()
                times.append(time.monotonic() - begin)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                failures.append(repr(error))

    reader = threading.Thread(target=ask)
    reader.start()
    begin = time.monotonic()
    idle = []
    for _ in range(options.connections):
        each = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
        try:
            each.sendall(b"GET / HTTP/1.1\r\n")
        except OSError:
            pass  # it was closed already, for a newer one
        idle.append(each)
    opened = time.monotonic() - begin
    time.sleep(3)
    over.set()
    reader.join()
    proc = pathlib.Path("/proc") / str(server.pid)
    descriptors = len(list((proc / "fd").iterdir()))
    memory = re.search(r"VmHWM:\s+(\d+)", (proc / "status").read_text())[1]
    server.terminate()
    times.sort()
    print(f"{len(idle)} connections in {opened:.1f} s ({len(idle) / opened:.0f}/s)")
    print(f"{len(times)} requests beside them, {len(failures)} failed {failures[:2]}")
    print(f"median {1e3 * times[len(times) // 2]:.1f} ms, worst {1e3 * times[-1]:.1f} ms")
    print(f"server: {descriptors} descriptors, at most {int(memory) / 1024:.0f} MiB")
    print(f"exit code {server.wait(10)}")


if __name__ == "__main__":
    main()
