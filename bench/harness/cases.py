"""The rows of the report: what is measured, on whom, and the bars.

A row shows one figure of a measurement; a measurement is a set of contestants that take turns; a contestant
is anything that returns a dictionary of figures. To add a row:

  a mode of the load generator, on the floor and on monolock
      Row("title", against_floor("mode", "--flag"), "figure", "µs", bars=(Times(1.2),))
  a program of build/bench that prints a JSON object of figures, and needs no server
      program = Measurement("what", (command("name", "program", "--flag", seconds_max=900, runs_max=1),))
      Row("title", program, "figure", "B", bars=(AtMost(768, of="name"),), reference=None)
  two modes against each other: see PROMOTION
  a function of the harness: see storm_of

Words in braces are quantities that --quick makes small: options.quantities().
"""

import dataclasses

from .first_grant import first_grant
from .judging import FLOOR, JUDGED, AtMost, More, Row, Times
from .measurements import Contestant, Measurement, command, served, served_while_asked
from .peers import ETCD, POSTGRES, REDIS
from .servers import Floor, Monolock
from .storms import storm

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
SHORT, LONG = "queue of 10", "long queue"
PROMOTION = Measurement(
    "handover in a short and in a long queue",
    (
        served(named(SHORT, ONE), "handover", "--rounds", "{rounds}", "--waiters", "10"),
        served(named(LONG, ONE), "handover", "--rounds", "{rounds}", "--waiters", "{many}"),
    ),
)
LEAVES = ("--leaves", "{leaves}")
LEAVING = Measurement(
    "leaving the middle of a short and of a long queue",
    (
        served(named(SHORT, ONE), "leave", *LEAVES, "--waiters", "10", "--queues", "{short_queues}"),
        served(named(LONG, ONE), "leave", *LEAVES, "--waiters", "{many}"),
    ),
)
EXPIRY = Measurement(
    "expiry of many at once",
    (served(ONE, "expire", "--sessions", "{many}", "--lease-ms", "4000", runs_max=3),),
)

# As above, but an end is when the lock's next owner has its ACQUIRED.
HEIRS = Measurement(
    "expiry of many, each with an heir",
    (served(ONE, "expire", "--heirs", "--sessions", "{with_heirs}", "--lease-ms", "4000", runs_max=2),),
)
# As many as take several shards to answer, and more threads than a small machine has cores.
SCALING = Measurement(
    "heartbeat by threads",
    tuple(
        served(server, "heartbeat", "--outstanding", "512", runs_max=3)
        for server in (ONE, TWO, *(Monolock(f"{threads} threads", threads=threads) for threads in (4, 8)))
    ),
)


def storm_of(server, runs_max):
    def run(options):
        there = options.quantities()["crowd"] // 10
        newcomers = options.quantities()["many"] - there
        return storm(server, options, newcomers=newcomers, present=there)

    return Contestant(server.name, run, runs_max=runs_max)


STORM = Measurement("storm", tuple(storm_of(each, runs_max=3) for each in (ONE, TWO)))
# The best part of a minute each: 18,000 handshakes on either side.
MTLS_STORM = Measurement("mtls storm", tuple(storm_of(each, runs_max=1) for each in monolocks("mtls")))
START = Measurement("start to first grant", (first_grant(ONE), first_grant(TWO)))


def storm_rows(prefix, measurement):
    """What those felt who were there before."""
    felt = f"{prefix}: heartbeat p99 of those present, in leases"
    return (
        Row(felt, measurement, "per_lease", "", (AtMost(0.1),), reference=None),
        Row(f"{prefix}: sessions lost", measurement, "lost", "", (AtMost(0),), reference=None),
        Row(f"{prefix}: until all have their lock", measurement, "seconds", "s", reference=None),
    )


CONNECT_BAR = (Times(1.20),)
PLAIN = [
    Row("CPU per heartbeat, 64 in flight", BUSY, bars=(Times(1.15),)),
    Row("CPU per heartbeat, 10,000 a second", PACED),
    Row("CPU per connect–acquire–close, one at a time", CONNECT_ONE, bars=CONNECT_BAR),
    Row("CPU per connect–acquire–close, 16 at a time", CONNECT_MANY, bars=CONNECT_BAR),
    Row("heartbeat p50, 10,000 a second", PACED, "p50_us", percentiles="a heartbeat, 10,000 a second"),
    Row("heartbeat p99, 10,000 a second", PACED, "p99_us"),
    Row(
        "connect–acquire p50, 4,000 a second",
        CONNECT_PACED,
        "p50_us",
        percentiles="a connection, 4,000 a second",
    ),
    Row("connect–acquire p99, 4,000 a second", CONNECT_PACED, "p99_us"),
    Row(
        "handover p50, 64 waiters",
        HANDOVER,
        "p50_us",
        bars=(Times(1.25),),
        percentiles="handover, 64 waiters",
    ),
    Row("handover p99, 64 waiters", HANDOVER, "p99_us", bars=(Times(2.00),)),
    Row("memory per session, a lock each", MEMORY, "slope", "B", (AtMost(768),), reference=None),
    Row(
        "memory per session, waiters of one lock",
        MEMORY_WAITING,
        "slope",
        "B",
        (AtMost(640),),
        reference=None,
    ),
    Row(
        "heartbeat p99, 10,000 sessions, listings and slow scrapers",
        LISTINGS,
        "p99_us",
        bars=(More(5000, of=ASKED, than=JUDGED),),
        reference=JUDGED,
    ),
    Row("start to first grant", START, "ms", "ms", (AtMost(30),), reference=None),
    *(
        Row(title, measurement, figure, bars=(Times(1.5, of=LONG, than=SHORT),), reference=SHORT)
        for title, measurement, figure in (
            ("handover p50, a long queue", PROMOTION, "p50_us"),
            ("handover p99, a long queue", PROMOTION, "p99_us"),
            ("CPU per waiter that leaves the middle of a long queue", LEAVING, "cpu_us"),
        )
    ),
    Row("lateness of an expiry, p99", EXPIRY, "p99_ms", "ms", (AtMost(5),), reference=None),
    Row("expiries that came early", EXPIRY, "early", "", (AtMost(0),), reference=None),
    Row("lateness of an expiry, seen by the heir, p99", HEIRS, "p99_ms", "ms", (AtMost(5),), reference=None),
    Row("expiries that came early, seen by the heir", HEIRS, "early", "", (AtMost(0),), reference=None),
    Row("CPU per heartbeat, 512 in flight, by threads", SCALING, reference=JUDGED),
    *storm_rows("storm", STORM),
]


# --- more sessions than a machine has descriptors: the server's shards over a network in memory ----


def in_memory(name, *words):
    """Once: a run of these takes many samples itself, and up to a minute."""
    return command(name, "in_memory", *words, runs_max=1)


def heartbeats_in_memory(sessions):
    words = ("heartbeat", "--sessions", sessions, "--slices", "{in_memory_slices}")
    return Measurement(
        f"in memory: {' '.join(words)}", (in_memory(FLOOR, *words, "--floor"), in_memory(JUDGED, *words))
    )


def judged_in_memory(*words):
    return Measurement(f"in memory: {' '.join(words)}", (in_memory(JUDGED, *words),))


def queue_in_memory(name, waiters):
    return in_memory(name, "queue", "--waiters", waiters, "--rounds", "{in_memory_rounds}")


MEMORY_IN_MEMORY = judged_in_memory("memory", "--sessions", "{in_memory_most}")
WAITING_IN_MEMORY = judged_in_memory("memory", "--waiters", "--sessions", "{in_memory_most}")
QUEUE_IN_MEMORY = Measurement(
    "in memory: a short and a long queue",
    (queue_in_memory(SHORT, "10"), queue_in_memory(LONG, "{in_memory_many}")),
)
SILENCE = (
    *("expiry", "--sessions", "{in_memory_many}", "--waiters", "{in_memory_heirs}"),
    *("--lease", "{in_memory_expiry_ms}"),
)
EXPIRY_IN_MEMORY = judged_in_memory(*SILENCE)
EXPIRY_AT_ONCE = judged_in_memory(*SILENCE, "--at-once")
BEATING = judged_in_memory(
    *("beating", "--sessions", "{in_memory_most}"),
    *("--lease", "{in_memory_lease_ms}", "--duration", "{in_memory_beating_ms}"),
)


def row_in_memory(title, measurement, figure, unit="", limit=None):
    bars = () if limit is None else (AtMost(limit),)
    return Row(f"in memory: {title}", measurement, figure, unit, bars, reference=None)


IN_MEMORY_LONG = (Times(1.5, of=LONG, than=SHORT),)
IN_MEMORY = [
    *(
        Row(
            f"in memory: CPU per heartbeat, {how_many} sessions",
            heartbeats_in_memory(f"{{in_memory_{how_many}}}"),
            "cpu_ns",
            "ns",
        )
        for how_many in ("few", "many", "most")
    ),
    row_in_memory("memory per session, a lock each", MEMORY_IN_MEMORY, "per_session_bytes", "B", 768),
    row_in_memory("memory per session, waiters of one lock", WAITING_IN_MEMORY, "per_session_bytes", "B", 640),
    row_in_memory("share of the memory that stays when all have left", MEMORY_IN_MEMORY, "kept_share"),
    row_in_memory("share of the waiters' memory that stays", WAITING_IN_MEMORY, "kept_share"),
    # Bars are on what a client sees: the README says why.
    *(
        Row(f"in memory: {title}", QUEUE_IN_MEMORY, figure, unit, bars, reference=SHORT)
        for title, figure, unit, bars in (
            ("promotion p50, a long queue", "promotion_p50_us", "µs", IN_MEMORY_LONG),
            ("promotion p50, the server's part", "promotion_inside_p50_ns", "ns", ()),
            ("leaving the middle p50, a long queue", "leaving_p50_us", "µs", IN_MEMORY_LONG),
            ("leaving the middle p50, the server's part", "leaving_inside_p50_ns", "ns", ()),
        )
    ),
    row_in_memory("lateness of an expiry, p99", EXPIRY_IN_MEMORY, "late_p99_ms", "ms", 5),
    row_in_memory("expiries that came early", EXPIRY_IN_MEMORY, "early", limit=0),
    row_in_memory("lateness of an expiry, all at one instant, p99", EXPIRY_AT_ONCE, "late_p99_ms", "ms"),
    row_in_memory("expiries that came early, all at one instant", EXPIRY_AT_ONCE, "early", limit=0),
    row_in_memory("the most sessions beat: expired", BEATING, "expired", limit=0),
    row_in_memory("the most sessions beat: unanswered when the next was due", BEATING, "unanswered"),
    row_in_memory("the most sessions beat: share of a core", BEATING, "server_busy"),
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
    *storm_rows("mTLS storm", MTLS_STORM),
]

ROWS = PLAIN + IN_MEMORY + ENCRYPTED
