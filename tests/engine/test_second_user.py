"""What another user of the machine sees of a run, and what he can do to it: nothing.

He looks at every file, socket and process of a run, connects, floods, signals, makes names first and plants
links. He is real: a child process with another user id, which only root can make.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASSAY = ROOT / "build/release/bin/assay"
NOBODY = 65534
SETTINGS = """version = 1
[frameworks.paddle]
python = "python3"
environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={0}"]
[frameworks.torch]
python = "python3"
environment = ["ASSAY_FRAMEWORK_MODULE=fake_framework", "PYTHONPATH={0}"]
"""
# All that a run leaves in a folder that everybody can write, with its mode.
MODES = {
    r"assay-lanes-\w{6}": "drwx------",  # temporary files and compilers' caches of lanes
    rf"assay-{os.getuid()}": "drwx------",  # addresses of kept interpreters
}

pytestmark = [
    pytest.mark.skipif(not ASSAY.exists(), reason="assay is not built: make build"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user"),
]


class Place:
    """A folder of ours, and one that everybody can write, as /tmp is."""

    def __init__(self, folder):
        self.mine, self.shared = folder / "mine", folder / "shared"
        self.mine.mkdir()
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        (self.mine / "assay.toml").write_text(SETTINGS.format(ROOT / "tests/engine/fake"))
        self.environment = {**os.environ, "TMPDIR": str(self.shared), "OF": str(folder)}
        self.environment.pop("XDG_RUNTIME_DIR", None)

    def start(self, *words, lines=('paddle.fake.echo(Tensor([3], "float32"))',), logs="run"):
        (self.mine / "cases.txt").write_text("\n".join(lines) + "\n")
        command = [ASSAY, "api", "--test_cpu=True", "--api_config_file=cases.txt", f"--log_dir={logs}"]
        return subprocess.Popen(
            [*command, "--num_workers_per_gpu=1", *words],
            cwd=self.mine,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def call(self, words):
        """Runs a verb to its end."""
        command = [ASSAY, *words.split()]
        return subprocess.run(command, cwd=self.mine, env=self.environment, capture_output=True, text=True)

    def processes(self):
        """The processes of our runs here."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if (
                    entry.name.isdigit()
                    and f"OF={self.mine.parent}".encode() in (entry / "environ").read_bytes()
                ):
                    found.append(int(entry.name))
        return found


@pytest.fixture
def place():
    folder = Path(tempfile.mkdtemp(prefix="assay-test-"))
    folder.chmod(0o755)
    there = Place(folder)
    yield there
    for pid in there.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder)


def as_another(function):
    """What the function returns in a process of another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            told = json.dumps(function())
        except BaseException as error:
            told = json.dumps(f"{type(error).__name__}: {error}")
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as voice:
        told = json.loads(voice.read())
    os.waitpid(child, 0)
    return told


def sockets_of(pids):
    """The names of Unix sockets at which these processes listen."""
    inodes = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[6] in inodes and int(words[3], 16) & 0x10000:  # it accepts connections
            found.add(words[7])
    return found


def reached(paths, pids, addresses):
    """What this process can do to them; empty: nothing."""
    found = []
    for path in paths:
        for what, act in {
            "lists": lambda path=path: os.listdir(path),
            "writes into": lambda path=path: open(f"{path}/planted", "w").close(),
            "removes": lambda path=path: os.rename(path, f"{path}-gone"),
            "opens": lambda path=path: open(path).close(),
        }.items():
            with contextlib.suppress(OSError):
                act()
                found.append(f"{what} {path}")
    for pid in pids:
        for what in ("mem", "environ", "maps", "fd/0"):
            with contextlib.suppress(OSError):
                open(f"/proc/{pid}/{what}", "rb").close()
                found.append(f"opens {what} of {pid}")
        for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
            with contextlib.suppress(PermissionError):
                os.kill(pid, number)
                found.append(f"signals {pid}")
    for address in addresses:
        for request in (b'{"v": 1, "device": "cpu", "outside_mps": false}', b'{"v": 1, "environment": []}'):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
                asking.settimeout(20)
                asking.connect("\0" + address[1:])
                socket.send_fds(asking, [request], [0, 1, 2])
                if answer := asking.recv(4096):
                    found.append(f"{address} answers {answer!r}")
    return found


def flood(addresses):
    """Holds as many connections to the addresses as it gets, until it is killed."""
    held = []
    while True:
        for address in addresses:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.setblocking(False)
            with contextlib.suppress(OSError):
                one.connect("\0" + address[1:])
            held.append(one)
        held = held[-500:]


def test_he_reaches_no_file_no_socket_and_no_process(place):
    lines = [f'paddle.fake.slow(Tensor([{i}], "float32"), 0.2)' for i in range(1, 31)]
    run = place.start("--keep_frameworks=60", lines=lines)
    while not list(place.mine.glob("run/lanes/slot0-torch-*.log")) and run.poll() is None:
        time.sleep(0.05)
    time.sleep(0.2)  # for the lane that writes it
    pids = place.processes()
    assert len(pids) >= 7 and run.poll() is None, run.communicate()[0]
    entries = list(place.shared.iterdir())
    for entry in entries:
        modes = [mode for name, mode in MODES.items() if re.fullmatch(name, entry.name)]
        assert modes == [stat.filemode(entry.lstat().st_mode)], entry
    assert len({re.sub("lanes-.*", "lanes", entry.name) for entry in entries}) == len(MODES)
    assert [file for file in place.mine.rglob("*") if file.lstat().st_mode & 0o022] == []
    addresses = sockets_of(pids)
    assert len(addresses) >= 4, "two kept interpreters and two fork servers"
    assert [name for name in addresses if not name.startswith("@")] == [], "sockets are no files"
    written = [*entries, *place.mine.rglob("lanes")]
    assert as_another(lambda: reached(entries, pids, addresses)) == []
    assert as_another(lambda: [what for what in reached(written, [], []) if "writes" in what]) == []
    flooding = os.fork()
    if flooding == 0:
        os.setuid(NOBODY)
        flood(addresses)
    output = run.communicate(timeout=110)[0]
    os.kill(flooding, signal.SIGKILL)
    os.waitpid(flooding, 0)
    assert run.returncode == 0, output
    assert "30  pass" in output


class Watch(threading.Thread):
    """Notes what of assay appears in the folder and in /dev/shm, with its mode, until it is told to stop."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folders, self.seen, self.stopped = (folder, "/dev/shm"), {}, False

    def run(self):
        while not self.stopped:
            time.sleep(0.001)
            for entry in [entry for folder in self.folders for entry in os.scandir(folder)]:
                with contextlib.suppress(OSError):
                    if "assay" in entry.name:
                        self.seen[entry.name] = stat.filemode(entry.stat(follow_symlinks=False).st_mode)


# Verbs that write; {} stands for the folder.
VERBS = (
    "doctor",
    "api --api_config_file=cases.txt --log_dir={} --test_cpu=True --junit={}/junit.xml --markdown={}/a.md",
    "record --api_config_file=cases.txt --log_dir={} --test_cpu=True",
    "mutate --api_config_file=cases.txt --log_dir={} --markdown={}/score.md",
    "relations --api_config_file=cases.txt --log_dir={}",
    "run night.toml --foreground --log-dir={}",
    "chain check model/train_infer_python.txt",
    "chain run chain.toml --lenient --output-root={} --page={}/page.html",
    "chain record chain.db --build=b --goldens={}",
    "chain report chain.db --out={}/chain.html",
    "chain speed --filename=train.log --keyword=ips: --speed_log_file={}/speed.json",
    "timeline merge --log_dir=logs --out={}",
    "timeline analyze --log_dir=logs --out={}",
    "timeline record --out={} -- true",
    "corpus merge cases.txt --out={}/cases.txt",
    "report run --html={}/page.html --junit={}/junit.xml",
    "show run wrong",
    "repro run wrong --out={}",
    "finding run 1 --script={}/script.py",
    "shrink run --budget=2s",
    "merge {} run",
)
MATERIAL = {
    "night.toml": """version = 1
name = "night"
[input]
api_config_file = "cases.txt"
[output]
log_dir = "night"
[engine_args]
test_cpu = true
""",
    "chain.toml": """version = 1
model = "line"
[stages.train]
command = "python3 train.py"
makes = "weights"
""",
    "train.py": """for i in range(40):
    print(f"step {i} loss: {1 / (i + 1):.4f} ips: 10.0 samples/s", flush=True)
open("weights", "w").write("w")
""",
    "train.log": "".join(f"step {i} ips: {i}.5\n" for i in range(40)),
}


@pytest.fixture
def material(place):
    """What the verbs read: a run, a campaign, a chain, logs."""
    shutil.copytree(ROOT / "examples/chain", place.mine / "model")
    for name, text in MATERIAL.items():
        (place.mine / name).write_text(text)
    subprocess.run(
        ["python3", ROOT / "examples/timeline/pipeline_logs.py", "logs"], cwd=place.mine, check=True
    )
    run = place.start(lines=[f'paddle.fake.{name}(Tensor([3], "float32"))' for name in ("echo", "wrong")])
    output = run.communicate(timeout=110)[0]
    assert run.returncode == 1, output
    assert place.call("chain run chain.toml --lenient --store=chain.db").returncode == 0
    return place


@pytest.mark.slow
def test_what_each_verb_writes_is_closed_to_him(material):
    place = material
    watch = Watch(place.shared)
    watch.start()
    for number, verb in enumerate(VERBS):
        (place.mine / f"out-{number}").mkdir()
        done = place.call(verb.replace("{}", f"out-{number}"))
        assert done.returncode in (0, 1), (verb, done.stdout + done.stderr)
        written = list((place.mine / f"out-{number}").iterdir())
        assert written or "{}" not in verb or "timeline record" in verb, verb  # `true` makes no jobs
    watch.stopped = True
    watch.join()
    assert watch.seen != {}
    assert {name: mode for name, mode in watch.seen.items() if mode[4:] != "------"} == {}
    assert list(place.shared.iterdir()) == [], "nothing is left"
    writable = [
        file for file in place.mine.rglob("*") if not file.is_symlink() and file.stat().st_mode & 0o022
    ]
    assert writable == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", [verb for verb in VERBS if "{}" in verb])
def test_links_for_what_a_verb_writes_lead_nowhere(verb, material):
    place = material
    (place.mine / "out").mkdir()
    done = place.call(verb.replace("{}", "out"))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    written = [str(file.relative_to(place.mine / "out")) for file in (place.mine / "out").rglob("*")]
    names = [name for name in written if not (place.mine / "out" / name).is_dir()]
    aim = place.mine / "aim"
    aim.mkdir()
    (aim / "precious").write_text("precious")
    attacks = {
        "its folder": lambda folder: os.symlink(aim, folder),
        "its files": lambda folder: plant(folder, dict.fromkeys(names, aim / "precious")),
        "new files": lambda folder: plant(
            folder, {name: aim / "new" for name in names if not name.endswith(".db")}
        ),
        "new databases": lambda folder: plant(
            folder, {name: aim / "new" for name in names if name.endswith(".db")}
        ),
    }
    for number, (what, attack) in enumerate(attacks.items()):
        folder = place.shared / f"out-{number}"
        as_another(lambda attack=attack, folder=folder: attack(folder))
        done = place.call(verb.replace("{}", str(folder)))
        assert done.returncode in (0, 1, 2, 3, 5), (what, done.stdout + done.stderr)
        assert [file.name for file in aim.iterdir()] == ["precious"], (what, done.stdout + done.stderr)
        assert (aim / "precious").read_text() == "precious", (what, done.stdout + done.stderr)


def test_a_page_is_closed_to_him(place):
    run = place.start()
    assert run.wait(110) == 0
    place.environment["ASSAY_SERVE_TOKEN"] = "secret"
    serve = subprocess.Popen(
        [ASSAY, "serve", "run"], cwd=place.mine, env=place.environment, stdout=subprocess.PIPE, text=True
    )
    port = int(re.search(r"http://127.0.0.1:(\d+)/secret/", serve.stdout.readline())[1])

    def connected():
        one = socket.socket()
        one.settimeout(60)
        one.connect(("127.0.0.1", port))
        return one

    def asked(path):
        with connected() as asking:
            asking.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            return asking.recv(1000).decode().partition("\r\n")[0]

    def tried():
        found = reached([], [serve.pid], [])
        closed = ("/data.json", "/wrong/", "/secre/", "/wrong/data.json")  # "/" is a page without data
        found += [path for path in closed if "403" not in asked(path)]
        held = [connected() for _ in range(300)]
        return found if len(held) == 300 and "403" in asked("/data.json") else "it answers nobody any more"

    assert as_another(tried) == []
    assert "secret" not in Path(f"/proc/{serve.pid}/cmdline").read_text()
    assert "200" in asked("/secret/data.json")
    serve.terminate()
    assert serve.wait(20) in (0, 130)


PLANTED = {
    "an open folder of kept interpreters": lambda place, aim: os.mkdir(place.shared / "assay-0", 0o777),
    "a link to one": lambda place, aim: os.symlink(aim, place.shared / "assay-0"),
    "a link as a folder of lanes": lambda place, aim: os.symlink(aim, place.shared / "assay-lanes-abcdef"),
    "a pipe as one": lambda place, aim: os.mkfifo(place.shared / "assay-lanes-abcdef", 0o666),
    "a cache of Inductor": lambda place, aim: os.mkdir(place.shared / "torchinductor_root", 0o777),
    "a link as the log's folder": lambda place, aim: os.symlink(aim, place.shared / "run"),
    "links in it": lambda place, aim: plant(
        place.shared / "run",
        {name: aim / "precious" for name in ("run.db", "run.db-wal", "running.json", "lanes")},
    ),
    "logs of lanes": lambda place, aim: plant(
        place.shared / "run",
        {f"lanes/{name}": aim / "precious" for name in ("server-paddle.log", "slot0.log")},
    ),
    "lists of cases": lambda place, aim: plant(
        place.shared / "run",
        {f"api_config_{name}.txt": aim / "precious" for name in ("pass", "paddle_error", "crash")},
    ),
}


def plant(folder, links):
    """Makes a folder that everybody can write, with these links."""
    os.umask(0)
    for name, target in links.items():
        (folder / name).parent.mkdir(0o777, parents=True, exist_ok=True)
        os.symlink(target, folder / name)


@pytest.mark.parametrize("what", PLANTED)
def test_names_that_he_makes_first_lead_nowhere(place, what):
    aim = place.mine / "aim"
    aim.mkdir()
    (aim / "precious").write_text("precious")
    as_another(lambda: PLANTED[what](place, aim))
    assert list(place.shared.iterdir()) != []
    run = place.start("--keep_frameworks=1", logs=place.shared / "run")
    output = run.communicate(timeout=110)[0]
    assert [file.name for file in aim.iterdir()] == ["precious"], output
    assert (aim / "precious").read_text() == "precious"
    assert run.returncode in (0, 2, 3), output
    if "log" not in what and "links in" not in what and "lists" not in what:
        assert run.returncode == 0, output
