"""A million names, used once each: what memory is left of them."""

import pathlib
import subprocess
import tempfile
import time

from support.server import Server
from support.waiting import wait_until

from .judging import judge_returned
from .subject import resident

SHARE = 0.10  # which may be left
AT_A_TIME = 16
SETTLE_SECONDS = 5  # memory goes back to the system within seconds
MIB = 1 << 20
FOR_EVER = "86400"


def use_names(count, options, say):
    """The verdicts, of a server that does nothing else and of one that keeps what it may keep: an audit log, and the
    history that the admin API looks back over, which is bounded and full after a hundredth of the names."""
    with tempfile.TemporaryDirectory(prefix="monolock-soak-") as folder:
        keeping = ["-admin-listen", "127.0.0.1:0", "-audit-log", str(pathlib.Path(folder, "audit.log"))]
        start, _, after = memory_around("a server that only grants", [], count, options, say)
        yield judge_returned("memory is back where it was at the start", start, after, SHARE)
        _, few, after = memory_around("with history and audit log", keeping, count, options, say)
        yield judge_returned("memory is back where it was when the history was full", few, after, SHARE)


def memory_around(title, flags, count, options, say):
    """Of a fresh server: at its start, after a hundredth of the names, and after so many more, each with a connection
    of its own that is granted and closes."""
    server = Server("-ops-listen", "127.0.0.1:0", *flags)
    try:
        grants(server)  # a scrape, as there are more to come
        start = resident(server.pid)
        few_used = claim_names(server, max(count // 100, 1), options)
        few = settled(server)
        began = time.monotonic()
        used = claim_names(server, count, options)
        seconds = time.monotonic() - began
        after = settled(server)
        say(
            f"{title}: {start / MIB:.2f} MiB at the start, {few / MIB:.2f} after {few_used:,} names, {after / MIB:.2f} after "
            f"{used:,} more in {seconds:.0f} s"
        )
        server.stop()
        return start, few, after
    finally:
        server.dispose()


def claim_names(server, count, options):
    """At least so many, each a new one of this run of the generator; how many there were."""
    host, port = server.address
    first = grants(server)
    command = [options.folder / "load", "--server", f"{host}:{port}", "--pid", str(server.pid)]
    command += ["--seconds", FOR_EVER, "--warm-up", "0", "connect", "--concurrent", str(AT_A_TIME)]
    generator = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: grants(server) - first >= count, f"{count} names", within=count / 100 + 60, interval=0.2)
    finally:
        generator.kill()
        generator.wait()
    wait_until(lambda: server.metrics()["monolock_connections_active"].value() == 0, "all have left")
    return grants(server) - first


def grants(server):
    return int(server.metrics()["monolock_acquires_total"].value())


def settled(server):
    """The memory when it has stopped falling."""
    last, since = resident(server.pid), time.monotonic()
    while time.monotonic() - since < SETTLE_SECONDS:
        time.sleep(0.2)
        if (now := resident(server.pid)) < last:
            last, since = now, time.monotonic()
    return resident(server.pid)
