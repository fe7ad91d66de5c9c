"""Training on a random cluster as a graph of host calls, kernels and transfers, perhaps with a fault.

Times are in microseconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PER_HOST = 8
SIZES = {4: 12, 8: 12, 16: 10, 32: 8, 64: 5, 128: 2, 256: 1, 512: 1}  # ranks: weight
FAULTS = (
    "balanced",
    "gpu",
    "two_gpus",
    "host",
    "moving",
    "gc",
    "loader",
    "copy",
    "work",
    "link",
    "stage",
    "pause",
)
NOISE = 0.005  # of a kernel's time


@dataclass
class Graph:
    """What the ranks do, in the order in which they start it. A task starts after all of `after`; the parts
    of a meeting end together."""

    healthy: list[float] = field(default_factory=list)  # durations
    extra: list[tuple[float, int]] = field(
        default_factory=list
    )  # what the fault adds, and which of its ranks
    after: list[list[int]] = field(default_factory=list)
    meeting: list[int] = field(default_factory=list)  # -1: none
    meetings: list[list[int]] = field(default_factory=list)

    def add(self, healthy: float, extra: float, culprit: int, after: list[int], meeting: int = -1) -> int:
        self.healthy.append(healthy)
        self.extra.append((extra, culprit))
        self.after.append(after)
        self.meeting.append(meeting)
        if meeting >= 0:
            self.meetings[meeting].append(len(self.healthy) - 1)
        return len(self.healthy) - 1

    def run(self, mended: Callable[[int], bool]) -> tuple[list[float], list[float]]:
        """When each task begins and ends, without the time that the culprits of `mended` add."""
        count = len(self.healthy)
        begins, ends, waits = [0.0] * count, [0.0] * count, [len(a) for a in self.after]
        then: list[list[int]] = [[] for _ in range(count)]
        for task, after in enumerate(self.after):
            for before in after:
                then[before].append(task)
        present = [0] * len(self.meetings)
        ready = [task for task in range(count) if waits[task] == 0]
        while ready:
            task = ready.pop()
            begins[task] = max((ends[before] for before in self.after[task]), default=0.0)
            done, since, meeting = [task], begins[task], self.meeting[task]
            if meeting >= 0:
                present[meeting] += 1
                done = self.meetings[meeting] if present[meeting] == len(self.meetings[meeting]) else []
                since = max((begins[part] for part in done), default=0.0)
            for part in done:
                extra, culprit = self.extra[part]
                ends[part] = since + self.healthy[part] + (0.0 if mended(culprit) else extra)
                for after_it in then[part]:
                    waits[after_it] -= 1
                    if waits[after_it] == 0:
                        ready.append(after_it)
        return begins, ends


@dataclass
class Cluster:
    """The shape of a cluster and its fault, by a seed."""

    rng: random.Random
    ranks: int
    tensor: int = 1
    stages: int = 1
    experts: int = 1
    fault: str = "balanced"

    def __post_init__(self) -> None:
        rng, n = self.rng, self.ranks
        while True:
            self.choose_shape()
            if self.can_tell():
                break
        self.kind = "+".join(
            name
            for name, size in (
                ("data", self.data),
                ("tensor", self.tensor),
                ("pipeline", self.stages),
                ("expert", self.experts),
            )
            if size > 1
        )
        self.micro_batches = self.stages * rng.choice((1, 2)) if self.stages > 1 else 1
        self.steps = 12 if n <= 32 else 8 if n <= 128 else 6
        self.first_step = rng.choice((0, 0, 10, 1000))
        self.scale = rng.choice((300.0, 1000.0, 4000.0))  # of a layer's kernel
        self.synchronous = rng.random() < 0.5  # the host waits for its GPU after each step
        hosts = (n + PER_HOST - 1) // PER_HOST
        self.skew = [0.0] + [rng.uniform(-50_000, 50_000) for _ in range(hosts - 1)]
        self.drift = [0.0] + [rng.uniform(-10e-6, 10e-6) for _ in range(hosts - 1)]
        self.choose_fault()

    def can_tell(self) -> bool:
        """Whether most peers of the culprits are healthy, and a slow host is no whole stage."""
        peers = self.tensor * self.data
        least = {"two_gpus": 4, "moving": 4, "host": 4 * PER_HOST}.get(
            self.fault, 2 if self.stages < 3 else 1
        )
        return peers >= least and (self.fault != "host" or peers % PER_HOST == 0)

    def choose_shape(self) -> None:
        rng, n = self.rng, self.ranks
        self.tensor = self.stages = self.experts = 1
        wanted = rng.choice(("data", "tensor", "pipeline", "expert", "mixed"))
        if self.fault == "stage":
            wanted = "pipeline"
        if wanted in ("tensor", "mixed"):
            self.tensor = rng.choice([t for t in (2, 4, 8) if t <= n // 2])
        if wanted in ("pipeline", "mixed"):
            least = 4 if self.fault == "stage" else 2
            self.stages = rng.choice([s for s in (2, 4, 8) if s >= least and self.tensor * s <= n])
        data = n // self.tensor // self.stages
        if wanted == "expert" or (wanted == "mixed" and rng.random() < 0.4):
            self.experts = rng.choice([e for e in (2, 4, 8) if e <= data] or [1])
        self.data = data

    def choose_fault(self) -> None:
        rng, n = self.rng, self.ranks
        one = rng.randrange(n)
        self.culprits: list[int] = [one]
        self.factor = rng.uniform(1.15, 1.7)
        lasting = rng.random() < 0.6
        begin = rng.randrange(self.steps // 2)
        end = rng.choice((self.steps, rng.randrange(begin + self.steps // 3 + 1, self.steps + 1)))
        self.faulty = set(range(begin, end))
        if self.fault in ("gc", "pause") or (not lasting and self.fault in ("gpu", "loader", "copy", "work")):
            self.faulty = {rng.randrange(1, self.steps - 1)}
            if rng.random() < 0.4 and self.fault != "pause":
                every = rng.choice((3, 4, 5))
                self.faulty = set(range(rng.randrange(1, 3), self.steps, every))
            self.factor = rng.uniform(1.6, 3)
        if self.fault == "balanced":
            self.culprits, self.faulty = [], set()
        elif self.fault == "two_gpus":
            self.culprits = sorted(rng.sample([r for r in range(n) if self.stage(r) == self.stage(one)], 2))
        elif self.fault == "host":
            self.culprits = [r for r in range(n) if r // PER_HOST == one // PER_HOST]
        elif self.fault == "moving":
            self.culprits = rng.sample(range(n), 4)
            self.faulty = set(range(self.steps))
        elif self.fault == "stage":
            self.culprits = [r for r in range(n) if self.stage(r) == self.stage(one)]
        elif self.fault == "link":
            self.culprits = self.group(self.link_kind(), one)
            if len(self.culprits) * 2 > n:
                self.faulty = set(range(self.steps // 2 + 1, self.steps))  # compared with itself
        elif self.fault == "pause":
            self.culprits = list(range(n))

    def link_kind(self) -> str:
        return (
            "tensor"
            if self.tensor > 1
            else "expert"
            if self.experts > 1
            else "pipeline"
            if self.stages > 1
            else "data"
        )

    def stage(self, rank: int) -> int:
        return rank // (self.tensor * self.data)

    def group(self, kind: str, rank: int) -> list[int]:
        """The ranks that `rank` meets: tensor parallel ranks are neighbours, stages are farthest apart."""
        place, block = rank % self.tensor, self.tensor * self.data
        first = rank // block * block
        if kind == "tensor":
            return list(range(rank - place, rank - place + self.tensor))
        if kind == "pipeline":  # a pair of stages that send to each other
            other = rank + block if self.stage(rank) + 1 < self.stages else rank - block
            return sorted((rank, other))
        replica = (rank - first) // self.tensor
        same = (
            range(self.data)
            if kind == "data"
            else range(self.data)[replica // self.experts * self.experts :][: self.experts]
        )
        return [first + r * self.tensor + place for r in same]

    def longer(self, what: str, rank: int, step: int) -> float:
        """By how many times of its duration the fault prolongs a task."""
        if step not in self.faulty or rank not in self.culprits:
            return 0.0
        if self.fault == "moving":
            return self.factor - 1 if what == "kernel" and self.culprits[step % 4] == rank else 0.0
        kernel = self.fault in ("gpu", "two_gpus", "host", "stage", "work")
        return self.factor - 1 if kernel and what == "kernel" else 0.0

    def local(self, rank: int, time: float) -> float:
        host = rank // PER_HOST
        return 1e6 + time - self.skew[host] - self.drift[host] * time


class Training:
    """Builds the graph of a cluster's training, and the event of each task."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.graph = cluster, Graph()
        self.rng = cluster.rng
        self.events: list[tuple[int, str, str, str]] = []  # rank, category, name, args; by task
        self.last: dict[tuple[int, str], int] = {}  # by rank and stream
        self.steps: list[list[int]] = []  # the last task of each rank
        self.marks: list[list[int]] = []  # the first task of each rank
        self.open: dict[tuple[object, ...], int] = {}  # meetings by what identifies them
        for step in range(cluster.steps):
            self.marks.append([])
            for rank in range(cluster.ranks):
                self.step(rank, step)
            self.steps.append([self.last[rank, "7"] for rank in range(cluster.ranks)])

    def host(
        self,
        rank: int,
        name: str,
        took: float,
        extra: float = 0,
        category: str = "cpu_op",
        after: list[int] | None = None,
    ) -> int:
        before = [*([self.last[rank, "host"]] if (rank, "host") in self.last else []), *(after or [])]
        task = self.graph.add(took * self.rng.gauss(1, 0.05), extra, rank, before)
        self.events.append((rank, category, name, ""))
        self.last[rank, "host"] = task
        return task

    def device(
        self,
        rank: int,
        name: str,
        took: float,
        extra: float,
        after: list[int],
        stream: str = "7",
        category: str = "kernel",
        args: str = "",
        meeting: int = -1,
        culprit: int | None = None,
    ) -> int:
        launch = self.host(rank, "cudaLaunchKernel", 4, category="cuda_runtime")
        before = [launch, *after, *([self.last[rank, stream]] if (rank, stream) in self.last else [])]
        task = self.graph.add(took, extra, rank if culprit is None else culprit, before, meeting)
        self.events.append((rank, category, name, f'"stream":{stream},"correlation":{launch}{args}'))
        self.last[rank, stream] = task
        return task

    def kernel(self, rank: int, step: int, name: str, took: float, after: list[int] | None = None) -> int:
        took *= self.rng.gauss(1, NOISE)
        longer = self.cluster.longer("kernel", rank, step)
        blocks = 1000 * (1 + longer if self.cluster.fault == "work" else 1)
        return self.device(rank, name, took, took * longer, after or [], args=f',"grid":[{blocks:.0f},1,1]')

    def meet(
        self,
        rank: int,
        step: int,
        kind: str,
        name: str,
        took: float,
        place: object,
        after: list[int],
        stream: str,
    ) -> int:
        c = self.cluster
        members = c.group(kind, rank)
        key = (kind, members[0], step, place)
        if key not in self.open:
            self.open[key] = len(self.graph.meetings)
            self.graph.meetings.append([])
        slow = c.fault == "link" and step in c.faulty and members == c.culprits and kind == c.link_kind()
        kernel = {"allreduce": "AllReduce_Sum_bf16_RING_LL", "all_to_all": "SendRecv"}[name]
        args = self.group_args(kind, name, members, int(took * 1000))
        took *= 1 + self.rng.gauss(0, NOISE) ** 2
        extra = took * 8 * (c.factor - 1) if slow else 0.0
        return self.device(
            rank,
            f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)",
            took,
            extra,
            after,
            stream,
            args=args,
            meeting=self.open[key],
            culprit=c.culprits[0] if slow else -1,
        )

    @staticmethod
    def group_args(kind: str, name: str, members: list[int], elements: int, more: str = "") -> str:
        shown = members if len(members) < 24 else [*members[:3], "...", members[-1]]
        ranks = "[" + ", ".join(map(str, shown)) + "]"
        return (
            f',"Collective name":"{name}","In msg nelems":{elements},"Out msg nelems":{elements},'
            f'"Group size":{len(members)},"dtype":"BFloat16",'
            f'"Process Group Name":"{kind}{members[0]}_{len(members)}","Process Group Description":"{kind}",'
            f'"Process Group Ranks":"{ranks}"{more}'
        )

    def transfer(self, rank: int, peer: int, step: int, sends: bool, place: object, after: list[int]) -> int:
        """A send to, or a receive from, a rank of a neighbouring stage, in the process group of all."""
        c = self.cluster
        source, target = (rank, peer) if sends else (peer, rank)
        key = ("p2p", source, target, step, place)
        if key not in self.open:
            self.open[key] = len(self.graph.meetings)
            self.graph.meetings.append([])
        block = c.tensor * c.data
        members = list(range(rank % block, c.ranks, block))
        more = f',"{"Dst" if sends else "Src"} Rank":{members.index(peer)}'
        args = self.group_args("pipeline", "send" if sends else "recv", members, 2_000_000, more)
        slow = (
            c.fault == "link"
            and step in c.faulty
            and c.link_kind() == "pipeline"
            and {rank, peer} == set(c.culprits)
        )
        took = 0.1 * c.scale
        return self.device(
            rank,
            "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
            took,
            took * 30 * (c.factor - 1) if slow else 0.0,
            after,
            "22" if sends else "23",
            args=args,
            meeting=self.open[key],
            culprit=c.culprits[0] if slow else -1,
        )

    def step(self, rank: int, step: int) -> None:
        c, scale = self.cluster, self.cluster.scale
        mine = step in c.faulty and rank in c.culprits
        length = scale * (2 if c.stages == 1 else 2 * c.micro_batches)
        if c.fault == "pause" and mine:
            self.host(rank, "save_checkpoint", 50, length * c.factor, after=[self.last[rank, "7"]])
        wait = [self.last[rank, "7"]] if step > 0 and c.synchronous else []
        ahead = [self.steps[step - 2][rank]] if step > 1 else []
        self.host(rank, "aten::empty", 2, after=wait or ahead)
        self.marks[-1].append(self.last[rank, "host"])
        loading = length * (c.factor - 1) if c.fault == "loader" and mine else 0.0
        self.host(
            rank,
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            50,
            loading,
            "user_annotation",
        )
        copying = length * (c.factor - 1) if c.fault == "copy" and mine else 0.0
        last = self.device(
            rank,
            "Memcpy HtoD (Pinned -> Device)",
            30,
            copying,
            [],
            category="gpu_memcpy",
            args=',"bytes":4194304',
        )
        for name, batch in self.schedule(c.stage(rank)):
            last = self.job(rank, step, name, batch)
        if c.data > 1:
            last = self.meet(rank, step, "data", "allreduce", scale / 2, "gradients", [last], "20")
        if c.fault == "gc" and mine:
            self.host(
                rank, "gc.collect", 50, (3 if not c.synchronous else 1) * length * c.factor, "python_function"
            )
        self.kernel(rank, step, "multi_tensor_apply_kernel<Adam>", scale / 5, [last])

    def schedule(self, stage: int) -> Iterator[tuple[str, int]]:
        """1F1B."""
        stages, batches = self.cluster.stages, self.cluster.micro_batches
        warm = min(batches, stages - stage - 1)
        for batch in range(warm):
            yield "Forward", batch
        for batch in range(batches):
            if warm + batch < batches:
                yield "Forward", warm + batch
            yield "Backward", batch

    def job(self, rank: int, step: int, name: str, batch: int) -> int:
        """A forward or backward of a stage; returns its last kernel."""
        c = self.cluster
        block, took = (
            c.tensor * c.data,
            c.scale * (1 if name == "Forward" else 2) / (4 if c.stages > 1 else 1),
        )
        stage = c.stage(rank)
        down = name == "Forward"
        arrives = stage > 0 if down else stage + 1 < c.stages
        leaves = stage + 1 < c.stages if down else stage > 0
        after = (
            [self.transfer(rank, rank - block if down else rank + block, step, False, (name, batch), [])]
            if arrives
            else []
        )
        begin = self.host(rank, "aten::view", 2)
        last = self.kernel(rank, step, f"ampere_bf16_gemm_{name.lower()}", took * 0.6, after)
        if c.tensor > 1:
            last = self.meet(rank, step, "tensor", "allreduce", took * 0.1, (name, batch), [last], "21")
        if c.experts > 1:
            last = self.meet(rank, step, "expert", "all_to_all", took * 0.1, (name, batch), [last], "24")
        last = self.kernel(rank, step, f"flash_{name.lower()}_kernel", took * 0.4, [last])
        end = self.host(rank, "aten::view", 2)
        if c.stages > 1:
            self.jobs.append((rank, f"{name} {batch}", begin, end))
        if leaves:
            self.transfer(rank, rank + block if down else rank - block, step, True, (name, batch), [last])
        return last

    @property
    def jobs(self) -> list[tuple[int, str, int, int]]:
        return self.__dict__.setdefault("_jobs", [])
