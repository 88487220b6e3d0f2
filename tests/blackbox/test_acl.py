"""Who may claim what: the rules at work (S13), and rules that change (S11)."""

import time

import pytest

from support.protocol import (
    CANONICAL_REASONS,
    EMPTY_NAME,
    FIRST_NOT_ACQUIRE,
    HEARTBEAT_FRAME,
    LEASE_NOT_POSITIVE,
    NAME_NOT_UTF8,
    NAME_TOO_LONG,
    NOT_AUTHORIZED,
    UNSUPPORTED_VERSION,
    Eof,
    Error,
    acquire_frame,
)
from support.tls_files import TlsFiles
from support.waiting import tried_again

DENIED = CANONICAL_REASONS[NOT_AUTHORIZED]


@pytest.fixture
def start_with(start_server, authority, tmp_path):
    """start_with(rules, *flags): a server with these rules."""

    def start(rules, *flags):
        return start_server(*flags, tls=TlsFiles(tmp_path, authority, rules=rules))

    return start


def check_denied(server, who, lock):
    with server.connect(who=who) as client:
        client.acquire(lock).expect_refused(NOT_AUTHORIZED, DENIED)


def check_allowed(server, who, lock):
    with server.connect(who=who) as client:
        client.own(lock)


# --- the rules

RULES = [
    ("importer", ["nightly", "db/*"]),
    ("team-?", ["team/?/*"]),
    ("*", ["public/*"]),
    (".+[x]\\^$|()", [".+[x]\\d{2}"]),
    ("star", ["a*b*c"]),
    ("ü?", ["?"]),
    ("two-rules", ["x"]),
    ("two-rules", ["y"]),
    ("anything", ["*"]),
    ("pair", ["??"]),
    ("*suffix", ["*/end"]),
]

CASES = {
    "importer": (
        ["nightly", "db/a", "db/a/b", "db/", "db/*", "db/\n", "public/x"],
        ["nightly2", "Nightly", "nightly ", " nightly", "night", "db", "xdb/a", "DB/a", "x", "*", "public"],
    ),
    "importer2": (["public/importer"], ["nightly", "db/a"]),
    "Importer": (["public/"], ["nightly"]),
    "*": (["public/star"], ["nightly", "db/a", "x"]),
    "team-a": (["team/x/", "team/x/y/z"], ["team/xx/y", "team//y", "team/x"]),
    "team-*": (["team/x/y"], ["nightly"]),
    "team-": (["public/x"], ["team/x/y"]),
    "team-ab": (["public/x"], ["team/x/y"]),
    ".+[x]\\^$|()": ([".+[x]\\d{2}"], ["..[x]\\d{2}", ".+x\\d{2}", ".+[x]\\dd", "a"]),
    "a+x\\^$|()": (["public/x"], [".+[x]\\d{2}"]),
    "star": (["abc", "aXbYc", "aabbcc", "a*b*c", "abcbc"], ["ac", "abcX", "Xabc", "acb"]),
    "üé": (["é", "😀", "\n", "?"], ["éé", "e\u0301", "ab"]),
    "ü😀": (["x"], ["xx"]),
    "ü": (["public/x"], ["é"]),
    "ue": (["public/x"], ["é"]),
    "two-rules": (["x", "y"], ["z", "xy"]),
    "anything": (["a", "\x00", "x" * 255, "\n", "*"], []),
    "pair": (["\n\x00", "üß", "??"], ["a", "abc", "u\u0308\u0308"]),
    "has-suffix": (["a/end", "/end", "a/b/end"], ["end", "a/end/"]),
}


def test_what_the_rules_allow_and_nothing_else(start_with):
    """Case S13: the whole string, byte for byte, `?` one character, everything else literal."""
    server = start_with(RULES, "-threads", "2")
    for who, (allowed, denied) in CASES.items():
        for lock in allowed:
            check_allowed(server, who, lock)
        for lock in denied:
            check_denied(server, who, lock)


def test_no_rule_allows_nobody(start_with):
    server = start_with([], "-threads", "2")
    for lock in ("a", "*", "client"):
        check_denied(server, "client", lock)


def test_without_an_acl_everybody_with_a_certificate_may_claim(start_server, mtls_files):
    server = start_server(tls=mtls_files)
    check_allowed(server, "whoever", "whatever")


def test_rights_are_checked_last(start_with):
    """Spec, section 1: the other faults of an ACQUIRE come first."""
    server = start_with([], "-threads", "2")
    for frame, code in [
        (HEARTBEAT_FRAME, FIRST_NOT_ACQUIRE),
        (acquire_frame("a", version=2), UNSUPPORTED_VERSION),
        (acquire_frame("a", 0), LEASE_NOT_POSITIVE),
        (acquire_frame("", 1000), EMPTY_NAME),
        (acquire_frame("n" * 256), NAME_TOO_LONG),
        (acquire_frame(b"\xff"), NAME_NOT_UTF8),
        (acquire_frame("a"), NOT_AUTHORIZED),
    ]:
        with server.connect() as client:
            client.send(frame)
            client.expect_refused(code, CANONICAL_REASONS[code])


def test_a_denied_claim_is_answered_once_and_leaves_no_trace(start_with, threads):
    server = start_with([("good", ["*"])], "-threads", threads)
    for index in range(6):
        with server.connect(who="bad") as denied, server.connect(who="good") as good:
            denied.send(acquire_frame(f"lock-{index}") + HEARTBEAT_FRAME * 5 + b"\x01")
            assert denied.all_frames() == [Error(NOT_AUTHORIZED, DENIED), Eof()]
            good.acquire(f"lock-{index}").expect_acquired()
    idle = server.settled_descriptors()
    with server.connect(who="good") as owner, server.connect(who="good") as waiter:
        token = owner.own("queue")
        check_denied(server, "bad", "queue")
        waiter.queue("queue")
        check_denied(server, "bad", "queue")
        owner.heartbeat().expect_acquired(token)
        owner.close()
        waiter.expect_acquired()
    server.wait_descriptors(idle)
    assert not server.loud_lines()


@tried_again
@pytest.mark.parametrize(
    "patterns, limit",
    [(["a*a*a*a*b"], 0.01), (["*a" * 30 + "b", "?*" * 30 + "b", "a?*" * 200 + "b"], 0.2)],
    ids=["the case", "worse ones"],
)
def test_patterns_that_blow_up_elsewhere(start_with, patterns, limit):
    """Case S13: time linear in pattern × text, where others never come back."""
    server = start_with([(pattern, [pattern]) for pattern in patterns] + [("a*", ["*a*a*a*a*a*b"])], "-threads", "1")
    fastest = limit
    for _ in range(5):
        with server.connect(who="a" * 4096) as client:
            client.acquire("a" * 255).expect_refused(NOT_AUTHORIZED)
            fastest = min(fastest, client.received_at - client.sent_at)
    assert fastest < limit


def test_many_rules(start_with):
    server = start_with([(f"client-{index}", [f"own/{index}/*"]) for index in range(5000)], "-threads", "2")
    check_allowed(server, "client-4999", "own/4999/x")
    check_denied(server, "client-4999", "own/4998/x")
    check_denied(server, "client-5000", "own/5000/x")


# --- rules that change


def test_revoked_waiter_leaves_and_owners_stay(start_with, threads):
    """Case S11, on locks of every shard, from the queue's head, middle and tail."""
    server = start_with([("owner", ["*"]), ("kept", ["*"]), ("revoked", ["*"])], "-threads", threads)
    locks = [f"changes-{index}" for index in range(5)]
    owners = [server.owner(lock, who="owner" if index % 2 else "revoked") for index, lock in enumerate(locks)]
    queues = [
        [(who, server.waiter(lock, who=who)) for who in ("revoked", "kept", "revoked", "kept", "revoked")]
        for lock in locks
    ]
    server.tls.permit([("kept", ["*"])])
    server.reload_well()
    for owner, queue in zip(owners, queues):
        kept = [waiter for who, waiter in queue if who == "kept"]
        for who, waiter in queue:
            if who == "revoked":
                waiter.expect_refused(NOT_AUTHORIZED, within=1)
                waiter.close()
        owner.heartbeat().expect_acquired()
        for waiter in kept:
            waiter.heartbeat().expect_waiting()
        owner.close()
        for waiter in kept:
            waiter.expect_acquired(within=1)
            waiter.close()
    check_denied(server, "revoked", locks[0])
    check_denied(server, "owner", locks[0])
    assert not server.loud_lines()


def test_revoked_for_some_locks_only(start_with):
    server = start_with([("a", ["*"])], "-threads", "2")
    owners = [server.owner(lock, who="a") for lock in ("keep/1", "lose/1", "keep/2", "lose/2")]
    waiters = [server.waiter(lock, who="a") for lock in ("keep/1", "lose/1", "keep/2", "lose/2")]
    server.tls.permit([("b", ["*"]), ("a", ["keep/*"])])
    server.reload_well()
    for index, waiter in enumerate(waiters):
        if index % 2:
            waiter.expect_refused(NOT_AUTHORIZED, within=1)
        else:
            waiter.heartbeat().expect_waiting()
            owners[index].close()
            waiter.expect_acquired()
    for connection in owners + waiters:
        connection.close()


def test_what_a_revoked_waiter_sent_before_is_answered_before(start_with):
    """Its heartbeats and its ERROR come in order, and nothing behind it."""
    server = start_with([("a", ["*"])], "-threads", "1")
    with server.connect(who="a") as owner, server.connect(who="a") as waiter:
        owner.own("order")
        waiter.queue("order")
        waiter.heartbeat(3)
        for _ in range(3):
            waiter.expect_waiting()
        server.tls.permit([])
        server.reload_well()
        assert waiter.all_frames() == [Error(NOT_AUTHORIZED, DENIED), Eof()]
        owner.heartbeat().expect_acquired()


def test_owner_that_was_revoked_is_an_owner_to_its_end(start_with):
    """Its heartbeats are answered as ever; once it leaves it is denied like anybody."""
    server = start_with([("a", ["*"])], "-threads", "2")
    with server.connect(who="a") as owner:
        token = owner.own("kept", 300)
        for _ in range(3):
            server.tls.permit([])
            server.reload_well()
            for _ in range(3):
                time.sleep(0.1)
                owner.heartbeat().expect_acquired(token)
    check_denied(server, "a", "kept")


def test_permission_that_is_given_counts_from_the_reload(start_with):
    server = start_with([], "-threads", "2")
    check_denied(server, "a", "x")
    server.tls.permit([("a", ["x"])])
    check_denied(server, "a", "x")  # a file alone changes nothing
    server.reload_well()
    check_allowed(server, "a", "x")
