"""As many real sessions as a machine allows: what they cost in memory, and whether any is falsely ended."""

import contextlib
import dataclasses
import pathlib
import re
import resource
import time
import urllib.request

from .crowds import Crowd, shares, total, worst
from .errors import CannotMeasure
from .options import DESCRIPTORS_SPARE, descriptor_limit

SESSIONS_MAX = 1_000_000
PER_PROCESS_MAX = 50_000  # one thread beats for so many without being late
SOURCE_ADDRESSES = 64  # of the generator: 127.0.0.1 and those after it
STEPS = (0.05, 0.25, 0.5, 1.0)  # of all sessions: where memory is read


@dataclasses.dataclass
class Limits:
    """What bounds the number of sessions here, in the words of the report."""

    wanted: int
    descriptors: int = dataclasses.field(default_factory=descriptor_limit)

    @property
    def by_descriptors(self):
        return self.descriptors - DESCRIPTORS_SPARE

    @property
    def by_ports(self):
        low, high = map(int, read_text("/proc/sys/net/ipv4/ip_local_port_range").split())
        return (high - low + 1) * SOURCE_ADDRESSES

    @property
    def sessions(self):
        return min(self.wanted, self.by_descriptors, self.by_ports)

    @property
    def per_process(self):
        return min(self.by_descriptors, PER_PROCESS_MAX)

    def lines(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        nr_open = read_text("/proc/sys/fs/nr_open").strip()
        yield f"descriptors of a process: {soft} soft, {hard} hard (fs.nr_open {nr_open})"
        yield f"  the server and each of its generators have so many each: {self.by_descriptors:,} sessions"
        yield f"ports: {self.by_ports:,} sessions over {SOURCE_ADDRESSES} source addresses"
        yield f"asked for: {self.wanted:,}; opened: {self.sessions:,}"


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes, with so many sessions open."""

    sessions: int
    server: int
    kernel: int  # all slabs of the machine: both ends of every connection are in there


def measure_memory(pid, sessions):
    server = re.search(r"^Rss:\s+(\d+) kB", read_text(f"/proc/{pid}/smaps_rollup"), re.MULTILINE)
    slabs = re.search(r"^Slab:\s+(\d+) kB", read_text("/proc/meminfo"), re.MULTILINE)
    return Memory(sessions, int(server[1]) * 1024, int(slabs[1]) * 1024)


def slope(samples, what):
    """Bytes a session, from the first step to the last."""
    first, last = samples[0], samples[-1]
    if first.sessions == last.sessions:
        return 0.0
    return (getattr(last, what) - getattr(first, what)) / (last.sessions - first.sessions)


def read_text(path):
    return pathlib.Path(path).read_text()


class ManySessions:
    """Sessions of one server, held by as many processes as it takes. Open from the first step on; all beat
    from when they are open."""

    def __init__(self, server, ops, options, limits, lease_ms):
        self.server, self.ops, self.options = server, ops, options
        self.limits, self.lease_ms = limits, lease_ms
        self.crowds, self.samples = [], []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.running = stack.enter_context(self.server.started(self.options))
            self.pid = self.running.pid
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *why):
        return self.stack.__exit__(*why)

    def open_all(self, say):
        opened = 0
        for step in STEPS:
            wanted = max(int(self.limits.sessions * step), 1)
            parts = -(-(wanted - opened) // self.limits.per_process)
            for share in shares(wanted - opened, parts) if parts else []:
                self.open_more(share, opened)
                opened += share
            time.sleep(0.5)  # what was sent last has been served
            self.samples.append(measure_memory(self.pid, opened))
            say(self.samples[-1])

    def open_more(self, share, first):
        crowd = Crowd("hold", self.running.flags, self.options, clients=share, first=first, lease_ms=self.lease_ms)
        self.crowds.append(self.stack.enter_context(crowd))
        crowd.next()

    def ask(self):
        """What all processes felt since they were asked last; percentiles are the worst process's."""
        lines = [crowd.ask() for crowd in self.crowds]
        return {
            "owning": total(lines, "owning"),
            "heartbeats": total(lines, "heartbeats", "count"),
            "p50_us": worst(lines, "heartbeats", "p50_us"),
            "p99_us": worst(lines, "heartbeats", "p99_us"),
            "max_us": worst(lines, "heartbeats", "max_us"),
            "late_p99_us": worst(lines, "generator_late", "p99_us"),
            "lost": total(lines, "lost"),
        }

    def cpu_seconds(self):
        spent = [read_text(each / "schedstat").split()[0] for each in pathlib.Path(f"/proc/{self.pid}/task").iterdir()]
        return sum(map(int, spent)) / 1e9

    def expired(self):
        """In the server's own words."""
        try:
            with urllib.request.urlopen(f"http://{self.ops}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError as error:
            raise CannotMeasure(f"/metrics: {error}") from error
        found = re.search(r'^monolock_releases_total\{reason="expired"\} (\d+)', text, re.MULTILINE)
        return int(found[1])
