"""The owners and waiters that docs/monolockctl.md shows, each from its own address: fleet.py SERVER"""

import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support.connection import Connection  # noqa: E402

LEASE_MS = 600_000  # longer than any test, so that nobody has to beat


def come(host):
    return Connection((sys.argv[1], 7070), source=(host, 0))


crowd = [come(host) for host in ("10.0.0.9", "10.0.0.4", "10.0.0.4", "10.0.0.5", "10.0.0.7")]
crowd[0].own("nightly", LEASE_MS)
for waiter in crowd[1:4]:
    waiter.queue("nightly", LEASE_MS)
crowd[4].own("backup", LEASE_MS)
print("there", flush=True)
signal.pause()
