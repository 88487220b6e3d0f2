"""The rows of the report: what is measured, on whom, and the bars.

A row shows one figure of a measurement; a measurement is a set of contestants that take turns. To add one:

  a mode of the load generator   Row("title", against_floor("mode", "--flag"), "figure", "unit", bars=(…))
  a program of build/bench that prints a JSON object of figures
                                 Row("title", Measurement("what", (command("name", "program", "--flag"),)),
                                     "figure", "unit", reference=None)
  two modes against each other   Measurement("what", (served(named("short", ONE), …), served(named("long", ONE), …)))
                                 with Row(…, reference="short", bars=(Times(1.5, of="long", than="short"),))

Words in braces are quantities that --quick makes small: options.quantities().
"""

import dataclasses

from .first_grant import first_grant
from .judging import FLOOR, JUDGED, AtMost, More, Row, Times
from .measurements import Measurement, served, served_while_asked
from .peers import ETCD, POSTGRES, REDIS
from .servers import Floor, Monolock

ASKED = f"{JUDGED}, asked"  # by operators, while it is measured


def named(name, server):
    """The same server under another name, for a measurement in which it appears twice."""
    return dataclasses.replace(server, name=name)


def monolocks(transport="plain"):
    one = Monolock(JUDGED, transport)
    return one, Monolock("2 threads", transport, threads=2)


ONE, TWO = monolocks()
PLAIN_FLOOR = Floor(FLOOR)
HANDOVER_FLOOR = Floor(FLOOR, arguments=("handover",))


def against_floor(*words, floor=PLAIN_FLOOR, peers=()):
    """The load generator in a mode: the floor, one thread, two threads, then the peers' contestants."""
    return Measurement(" ".join(words), (*(served(each, *words) for each in (floor, ONE, TWO)), *peers))


def over_tls(transport, *words, threads=2):
    """The same over TLS, where the floor is a server that does nothing but call OpenSSL; it knows no locks,
    so nobody waits there."""
    floor = Floor(FLOOR, transport, program="tls_floor_server")
    plain_words = [word for word in words if word != "--waiters"]
    contestants = [served(floor, *plain_words)]
    contestants += [served(each, *words) for each in monolocks(transport)[:threads]]
    return Measurement(f"{transport} {' '.join(words)}", tuple(contestants))


def alone(*words, peers=()):
    """Where the floor has nothing to compare: it keeps nothing of a session."""
    return Measurement(" ".join(words), (*(served(each, *words) for each in (ONE, TWO)), *peers))


def all_peers(*words):
    return tuple(served(peer, *words) for peer in (REDIS, POSTGRES, ETCD))


def asked(*words):
    """Left alone, and while operators ask."""
    return Measurement(
        f"{' '.join(words)}, asked",
        (
            served(Monolock(JUDGED, operators=True), *words),
            served_while_asked(Monolock(ASKED, operators=True), *words),
        ),
    )


BUSY = against_floor(
    "heartbeat",
    *("--outstanding", "64"),
    peers=(
        served(REDIS, "heartbeat", "--outstanding", "64"),
        served(ETCD, "heartbeat", "--outstanding", "64", "--connections", "64"),
    ),
)
PACED = against_floor("heartbeat", "--rate", "10000")
CONNECT_ONE = against_floor("connect", peers=all_peers("connect"))
CONNECT_MANY = against_floor("connect", "--concurrent", "16")
CONNECT_PACED = against_floor("connect", "--rate", "4000")
HANDOVER = against_floor(
    "handover",
    *("--rounds", "{rounds}"),
    floor=HANDOVER_FLOOR,
    peers=all_peers("handover", "--rounds", "{peer_rounds}"),
)
MEMORY = alone("memory", "--sizes", "{sizes}")
MEMORY_WAITING = alone(
    "memory",
    *("--waiters", "--sizes", "{sizes}"),
    peers=tuple(
        # A sample of a peer takes some seconds, and is the same each time.
        served(peer, "memory", "--waiters", "--sizes", sizes, "--settle", "{settle}", runs_max=2)
        for peer, sizes in ((REDIS, "200,2000"), (POSTGRES, "20,200"), (ETCD, "50,500"))
    ),
)
# A lease of 10 s each.
LISTINGS = asked("heartbeat", "--rate", "4000", "--latency-only", "--connections", "{crowd}")
START = Measurement("start to first grant", (first_grant(ONE), first_grant(TWO)))

CONNECT_BAR = (Times(1.20),)
PLAIN = [
    Row("CPU per heartbeat, 64 in flight", BUSY, bars=(Times(1.15),)),
    Row("CPU per heartbeat, 10,000 a second", PACED),
    Row("CPU per connect–acquire–close, one at a time", CONNECT_ONE, bars=CONNECT_BAR),
    Row("CPU per connect–acquire–close, 16 at a time", CONNECT_MANY, bars=CONNECT_BAR),
    Row("heartbeat p50, 10,000 a second", PACED, "p50_us", percentiles="a heartbeat, 10,000 a second"),
    Row("heartbeat p99, 10,000 a second", PACED, "p99_us"),
    Row("connect–acquire p50, 4,000 a second", CONNECT_PACED, "p50_us", percentiles="a connection, 4,000 a second"),
    Row("connect–acquire p99, 4,000 a second", CONNECT_PACED, "p99_us"),
    Row("handover p50, 64 waiters", HANDOVER, "p50_us", bars=(Times(1.25),), percentiles="handover, 64 waiters"),
    Row("handover p99, 64 waiters", HANDOVER, "p99_us", bars=(Times(2.00),)),
    Row("memory per session, a lock each", MEMORY, "slope", "B", (AtMost(768),), reference=None),
    Row("memory per session, waiters of one lock", MEMORY_WAITING, "slope", "B", (AtMost(640),), reference=None),
    Row(
        "heartbeat p99, 10,000 sessions, listings and slow scrapers",
        LISTINGS,
        "p99_us",
        bars=(More(5000, of=ASKED, than=JUDGED),),
        reference=JUDGED,
    ),
    Row("start to first grant", START, "ms", "ms", (AtMost(30),), reference=None),
]

HANDSHAKE = "CPU per connect–handshake–acquire–close"
HANDSHAKE_BAR = (Times(1.15),)
TLS_MEMORY_BARS = (Times(1.10), AtMost(26_000))
TLS_SIZES = ("--sizes", "{tls_sizes}")
MTLS_MEMORY = over_tls("mtls", "memory", *TLS_SIZES)
MTLS_WAITING = over_tls("mtls", "memory", "--waiters", *TLS_SIZES)
ENCRYPTED = [
    Row("mTLS: CPU per heartbeat, 64 in flight", over_tls("mtls", "heartbeat", "--outstanding", "64")),
    Row(f"mTLS: {HANDSHAKE}, one at a time", over_tls("mtls", "connect"), bars=HANDSHAKE_BAR),
    Row(
        f"mTLS: {HANDSHAKE}, 16 at a time",
        over_tls("mtls", "connect", "--concurrent", "16"),
        bars=HANDSHAKE_BAR,
    ),
    Row("mTLS: memory per session, a lock each", MTLS_MEMORY, "slope", "B", TLS_MEMORY_BARS),
    Row("mTLS: memory per session, waiters of one lock", MTLS_WAITING, "slope", "B", TLS_MEMORY_BARS),
    # Without client certificates, for comparison with mutual TLS: so the floor and one thread do.
    Row(f"TLS: {HANDSHAKE}, one at a time", over_tls("tls", "connect", threads=1)),
    Row("TLS: memory per session, a lock each", over_tls("tls", "memory", *TLS_SIZES, threads=1), "slope", "B"),
]

ROWS = PLAIN + ENCRYPTED
