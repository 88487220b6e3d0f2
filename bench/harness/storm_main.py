"""bench/storm: one storm, as its flags say, for a person or a program."""

import argparse
import json
import sys

from .errors import CannotMeasure
from .options import DESCRIPTORS_SPARE, add_server_flags, descriptor_limit, options_of
from .preparing import prepared
from .servers import Monolock
from .storms import KINDS, restart, storm


def parse(arguments=None):
    parser = argparse.ArgumentParser(prog="bench/storm", description="Clients that connect all at once.")
    parser.add_argument("--newcomers", type=int, help="(default: all that the descriptor limit allows)")
    parser.add_argument("--present", type=int, default=1000, help="who beat meanwhile (default %(default)s)")
    parser.add_argument("--lease-ms", type=int, default=10_000, help="theirs (default %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="that make the storm (default %(default)s)")
    parser.add_argument("--restart", action="store_true", help="kill the server and see all return instead")
    parser.add_argument("--json", action="store_true", help="all figures")
    add_server_flags(parser)
    flags = parser.parse_args(arguments)
    if flags.newcomers is None:
        here = 0 if flags.restart else flags.present
        flags.newcomers = min(descriptor_limit() - DESCRIPTORS_SPARE, 1_000_000) - here
    return flags


def measure(flags):
    options = options_of(flags)
    server = Monolock("server", flags.transport, threads=flags.threads)
    with prepared(options):
        if flags.restart:
            return restart(server, options, clients=flags.newcomers, processes=flags.processes)
        return storm(
            server,
            options,
            newcomers=flags.newcomers,
            present=flags.present,
            lease_ms=flags.lease_ms,
            processes=flags.processes,
        )


def by_kind(figures, what):
    if not figures[what]:
        return "0"
    return ", ".join(f"{figures[f'{what}_{kind}']:,} {kind}" for kind in KINDS if figures[f"{what}_{kind}"])


def text_of(flags, figures):
    lines = [
        f"{flags.newcomers:,} clients, {flags.transport}, {flags.threads} thread(s):",
        f"  all had their lock after {figures['seconds']:.2f} s (p50 {figures['grant_p50_us'] / 1e6:.2f} s)",
        f"  attempts: {figures['attempts']:,}; failed: {by_kind(figures, 'failed')}",
        f"  newcomers that lost a lock: {by_kind(figures, 'newcomers_lost')}; their generator sent a heartbeat up to "
        f"{figures['newcomers_late_max_us'] / 1e6:.2f} s late",
        f"  dropped at a full backlog: {figures['listen_drops']:,}",
    ]
    if flags.restart:
        lines.append(
            f"  killed in {figures['kill_seconds']:.2f} s, listening after {figures['listening_seconds']:.2f} s, "
            f"all back after {figures['all_back_seconds']:.2f} s"
        )
        return "\n".join(lines)
    lines += [
        f"  server CPU: {figures['cpu_us']:.1f} µs for each",
        f"  the {flags.present:,} present, lease {flags.lease_ms} ms: p99 {figures['calm_p99_us'] / 1000:.2f} ms before it; during it p50 "
        f"{figures['heartbeat_p50_us'] / 1000:.2f}, p99 {figures['heartbeat_p99_us'] / 1000:.2f}, "
        f"max {figures['heartbeat_max_us'] / 1000:.2f} ms, which is {figures['max_per_lease']:.3f} leases",
        f"  their generator was late by {figures['generator_late_p99_us'] / 1000:.2f} ms (p99); "
        f"sessions lost: {figures['lost']}",
    ]
    return "\n".join(lines)


def main():
    flags = parse()
    try:
        figures = measure(flags)
    except CannotMeasure as error:
        sys.exit(f"bench/storm: {error}")
    print(json.dumps(figures, indent=1) if flags.json else text_of(flags, figures))
