"""bench/many_sessions: opens them, says what they cost, and lets them beat."""

import argparse
import sys
import time

from .errors import CannotMeasure
from .many_sessions import SESSIONS_MAX, Limits, ManySessions, slope
from .options import add_server_flags, options_of
from .preparing import prepared
from .servers import Monolock, free_port

MEBIBYTE = 1 << 20


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        prog="bench/many_sessions", description="As many real sessions as this machine allows, beating."
    )
    parser.add_argument("--sessions", type=int, default=SESSIONS_MAX, help="at most (default %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="for which they beat (default %(default)s)")
    parser.add_argument("--lease-ms", type=int, default=10_000, help="everybody's (default %(default)s)")
    add_server_flags(parser)
    return parser.parse_args(arguments)


def say(text):
    print(text, flush=True)


def say_memory(sample):
    say(
        f"{sample.sessions:>9,} sessions: server {sample.server / MEBIBYTE:,.1f} MiB resident, "
        f"kernel slabs {sample.kernel / MEBIBYTE:,.1f} MiB"
    )


def beat(many, minutes):
    """Returns how many sessions were lost."""
    many.ask()
    cpu, started, lost = many.cpu_seconds(), time.monotonic(), 0
    end = started + minutes * 60
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 60))
        felt = many.ask()
        lost += felt["lost"]
        say(
            f"{time.monotonic() - started:>6.0f} s: {felt['owning']:,} own their lock, {felt['lost']} were lost; "
            f"{felt['heartbeats']:,} heartbeats, p50 {felt['p50_us'] / 1000:.2f}, p99 {felt['p99_us'] / 1000:.2f}, "
            f"max {felt['max_us'] / 1000:.2f} ms (sent late by {felt['late_p99_us'] / 1000:.2f} ms, p99)"
        )
    share = (many.cpu_seconds() - cpu) / (time.monotonic() - started)
    say(f"the server took {share:.1%} of a core; sessions lost: {lost}; expired, says the server: {many.expired()}")
    return lost


def run(flags):
    options = options_of(flags)
    limits = Limits(flags.sessions)
    for line in limits.lines():
        say(line)
    ops = f"127.0.0.1:{free_port()}"
    server = Monolock("server", flags.transport, threads=flags.threads, arguments=("-ops-listen", ops))
    with prepared(options), ManySessions(server, ops, options, limits, flags.lease_ms) as many:
        many.open_all(say_memory)
        say(
            f"a session: {slope(many.samples, 'server'):,.0f} bytes of the server, and "
            f"{slope(many.samples, 'kernel'):,.0f} of the kernel for both ends of its connection"
        )
        return beat(many, flags.minutes)


def main():
    try:
        lost = run(parse())
    except CannotMeasure as error:
        sys.exit(f"bench/many_sessions: {error}")
    sys.exit(f"bench/many_sessions: {lost} sessions were lost" if lost else 0)
