"""How much is measured and with what: the command line, and what follows from it and from the machine."""

import argparse
import dataclasses
import pathlib
import resource

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DESCRIPTORS_SPARE = 500  # the server's reserve, its log and what the generator needs besides


@dataclasses.dataclass
class Options:
    quick: bool
    runs: int
    seconds: float  # of a timed run
    only: str
    build_dir: pathlib.Path
    server: pathlib.Path
    scratch: pathlib.Path = pathlib.Path()  # certificates and the peers' data; gone after the run

    @property
    def folder(self):
        """Where the bench's programs are and its report goes."""
        return self.build_dir / "bench"

    def quantities(self):
        """What the words of a case may name in braces: as it should be, or as a smoke test does it."""
        return {
            "rounds": 100 if self.quick else 5000,
            "peer_rounds": 100 if self.quick else 1000,
            "settle": 0 if self.quick else 6,
            "sizes": listed(memory_sizes(1500 if self.quick else 15000)),
            "tls_sizes": listed(memory_sizes(300 if self.quick else 4500)),  # they take 1 ms each to open
            "crowd": memory_sizes(1000 if self.quick else 10000)[1],
            "many": memory_sizes(1000 if self.quick else 19000)[1],
            "short_queues": memory_sizes(1000 if self.quick else 10000)[1] // 11,  # of an owner and ten
            "leaves": 100 if self.quick else 2000,
            # Two descriptors each.
            "with_heirs": memory_sizes(1000 if self.quick else 19000)[1] // 2,
            **self.quantities_in_memory(),
        }

    def quantities_in_memory(self):
        """Of the cases over a network in memory, which no descriptor limit binds."""
        return {
            "in_memory_few": 500 if self.quick else 1_000,
            "in_memory_many": 5_000 if self.quick else 100_000,
            "in_memory_heirs": 500 if self.quick else 10_000,
            "in_memory_most": 10_000 if self.quick else 1_000_000,
            "in_memory_rounds": 100 if self.quick else 20_000,
            "in_memory_slices": 1 if self.quick else 7,
            "in_memory_expiry_ms": 500 if self.quick else 4_000,  # leases
            "in_memory_lease_ms": 400 if self.quick else 10_000,
            "in_memory_beating_ms": 200 if self.quick else 30_000,
        }

    def fill_in(self, words):
        """The words of a case with the quantities they name."""
        return [word.format(**self.quantities()) for word in words]


def listed(sizes):
    return ",".join(map(str, sizes))


def memory_sizes(largest):
    """A fifteenth of it and all of it, or what the descriptor limit allows."""
    largest = min(largest, descriptor_limit() - DESCRIPTORS_SPARE)
    return (max(largest // 15, 1), largest)


def descriptor_limit():
    """How many a process may have once it has raised its limit, as the server and the generator do."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        return hard
    return int(pathlib.Path("/proc/sys/fs/nr_open").read_text())


def add_program_flags(parser):
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--server", type=pathlib.Path, help="another server program to measure")


def add_server_flags(parser):
    """For a program that measures one server."""
    parser.add_argument("--transport", choices=("plain", "tls", "mtls"), default="plain")
    parser.add_argument("--threads", type=int, default=1, help="of the server (default %(default)s)")
    add_program_flags(parser)


def options_of(flags):
    """For a program whose one measurement the flags describe."""
    server = flags.server or flags.build_dir / "monolock"
    return Options(quick=False, runs=1, seconds=1.0, only="", build_dir=flags.build_dir, server=server)


def parse_options(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/run", description="Measures the server against the floor.")
    parser.add_argument("--quick", action="store_true", help="a smoke test; its figures mean nothing")
    parser.add_argument("--runs", type=int, default=5, help="runs of each case (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a run (default %(default)s)")
    parser.add_argument("--only", default="", metavar="WORD", help="only the cases with it in their title")
    add_program_flags(parser)
    options = Options(**vars(parser.parse_args(arguments)))
    options.server = options.server or options.build_dir / "monolock"
    if options.quick:
        options.runs, options.seconds = 1, 0.2
    return options
