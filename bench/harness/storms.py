"""Many clients connect at once, while others who were there before go on beating; and the return of all
after the server was killed."""

import contextlib
import pathlib
import time

from .crowds import Crowd, shares, total, worst
from .servers import free_port, listening

OTHERS_FIRST = 10_000_000  # the locks of those who were there before
CALM_SECONDS = 2.0
ANSWER_SECONDS = 0.1  # a heartbeat sent in the storm counts, although its answer comes after it
STORM_SECONDS_MAX = 120  # then somebody will never get a lock
KINDS = ("refused", "closed", "told", "broken", "timed_out")


def storm(server, options, *, newcomers, present, lease_ms=10_000, processes=1):
    """A storm of so many newcomers, whose lease is 10 s. What the present ones felt, whose lease is the one
    given, is in `calm_…` and `heartbeat_…` (before and during the storm); `per_lease` is their p99 as a share
    of the lease, and `max_per_lease` the worst."""
    with server.started(options) as running, contextlib.ExitStack() as stack:
        there = Crowd("hold", running.flags, options, clients=present, first=OTHERS_FIRST, lease_ms=lease_ms)
        stack.enter_context(there)
        there.next()
        time.sleep(CALM_SECONDS)
        calm = there.ask()
        drops = listen_drops()
        coming = start_storm(stack, running.flags, options, newcomers, processes)
        lines = [each.next() for each in coming]
        drops = listen_drops() - drops
        time.sleep(ANSWER_SECONDS)
        during = there.ask()
    usual_cpu = calm["server_cpu_seconds"] / calm["seconds"] * during["seconds"]
    return {
        **figures_of(lines),
        "cpu_us": (during["server_cpu_seconds"] - usual_cpu) / newcomers * 1e6,
        "calm_p50_us": calm["heartbeats"]["p50_us"],
        "calm_p99_us": calm["heartbeats"]["p99_us"],
        "heartbeats": during["heartbeats"]["count"],
        "heartbeat_p50_us": during["heartbeats"]["p50_us"],
        "heartbeat_p99_us": during["heartbeats"]["p99_us"],
        "heartbeat_max_us": during["heartbeats"]["max_us"],
        "generator_late_p99_us": during["generator_late"]["p99_us"],
        "per_lease": during["heartbeats"]["p99_us"] / 1000 / lease_ms,
        "max_per_lease": during["heartbeats"]["max_us"] / 1000 / lease_ms,
        "lost": total([calm, during], "lost"),
        "listen_drops": drops,
    }


def start_storm(stack, flags, options, newcomers, processes):
    coming = []
    for share in shares(newcomers, processes):
        first = sum(each.clients for each in coming)
        each = Crowd("storm", flags, options, clients=share, first=first, seconds=STORM_SECONDS_MAX)
        coming.append(stack.enter_context(each))
    return coming


def figures_of(lines):
    """Of the processes of one storm."""
    failed = {f"failed_{kind}": total(lines, "failed", kind) for kind in KINDS}
    return {
        "seconds": worst(lines, "seconds"),
        "grant_p50_us": worst(lines, "grants", "p50_us"),
        "grant_p99_us": worst(lines, "grants", "p99_us"),
        "newcomer_heartbeat_p99_us": worst(lines, "heartbeats", "p99_us"),
        "attempts": total(lines, "attempts"),
        "failed": total(lines, "failed"),
        **failed,
        "newcomers_lost": total(lines, "lost"),
        **{f"newcomers_lost_{kind}": total(lines, "lost", kind) for kind in KINDS},
        "newcomers_late_max_us": worst(lines, "generator_late", "max_us"),
    }


def listen_drops():
    """How many connections the kernel dropped so far because a backlog was full, on any socket."""
    lines = [line.split() for line in pathlib.Path("/proc/net/netstat").read_text().splitlines()]
    names, values = [line for line in lines if line[0] == "TcpExt:"]
    return int(values[names.index("ListenDrops")])


def restart(server, options, *, clients, processes=1):
    """So many clients have their locks; the server is killed and started again at once. `seconds` is from the
    first loss to the last lock."""
    address = f"127.0.0.1:{free_port()}"
    flags = ["--server", address, "--pid", "0", *server.transport_flags(options)]
    with contextlib.ExitStack() as stack:
        with listening(server.command(options, address)) as (first, *_):
            coming = start_storm(stack, flags, options, clients, processes)
            at_first = figures_of([each.next() for each in coming])
            drops = listen_drops()
            started = time.monotonic()
            first.kill()
            first.wait()
            died = time.monotonic()
        stack.enter_context(listening(server.command(options, address)))
        listens = time.monotonic()
        again = [each.next() for each in coming]
        all_back = time.monotonic()
    return {
        **figures_of(again),
        "first_storm_seconds": at_first["seconds"],
        "kill_seconds": died - started,
        "listening_seconds": listens - started,
        "all_back_seconds": all_back - started,
        "listen_drops": listen_drops() - drops,
    }
