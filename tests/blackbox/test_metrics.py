"""/metrics: the format, the names, and that the numbers are what the clients did (case H6)."""

import random
import re
import select
import subprocess
import time

import pytest

from support import http, metrics
from support.protocol import HEARTBEAT_FRAME, Acquired, Eof, Error, Waiting, acquire_frame
from support.waiting import SCALE, wait_until

REASONS = {"graceful", "expired", "io_timeout", "force"}
CODES = {f"{code:#04x}" for code in [0x01, 0x02, *range(0x10, 0x19)]}
PARTS = {"tls", "acl", "audit"}
TYPES = {
    "monolock_connections_active": "gauge",
    "monolock_locks_held": "gauge",
    "monolock_waiters": "gauge",
    "monolock_acquires_total": "counter",
    "monolock_acl_denials_total": "counter",
    "monolock_releases_total": "counter",
    "monolock_protocol_errors_total": "counter",
    "monolock_connections_accepted_total": "counter",
    "monolock_accept_errors_total": "counter",
    "monolock_tls_handshake_errors_total": "counter",
    "monolock_heartbeats_total": "counter",
    "monolock_wait_seconds": "summary",
    "monolock_hold_seconds": "summary",
    "monolock_audit_lost_events_total": "counter",
    "monolock_reload_failures_total": "counter",
    "monolock_build_info": "gauge",
    "monolock_wait_duration_seconds": "histogram",
    "monolock_hold_duration_seconds": "histogram",
    "monolock_handover_duration_seconds": "histogram",
    "process_cpu_seconds_total": "counter",
    "process_open_fds": "gauge",
    "process_max_fds": "gauge",
    "process_virtual_memory_bytes": "gauge",
    "process_resident_memory_bytes": "gauge",
    "process_start_time_seconds": "gauge",
}


@pytest.fixture
def measured(start_server, threads):
    return start_server("-threads", threads, "-ops-listen", "127.0.0.1:0")


def labels_of(family):
    return {value for _, labels in family.samples for _, value in labels}


def settle(server, **expected):
    """Waits until the metrics named, without monolock_ and _total, have these values; all families."""

    def settled():
        families = server.metrics()
        found = {
            name: families.get(f"monolock_{name}", families.get(f"monolock_{name}_total")).value() for name in expected
        }
        return families if found == expected else print(found, expected)

    return wait_until(settled, f"metrics settle at {expected}", interval=0.02)


# --- format and names


def test_every_metric_is_there_from_the_start(measured):
    families = measured.metrics()
    assert {name: family.type for name, family in families.items()} | TYPES == {
        name: family.type for name, family in families.items()
    }
    assert labels_of(families["monolock_releases_total"]) == REASONS
    assert labels_of(families["monolock_protocol_errors_total"]) == CODES
    assert labels_of(families["monolock_reload_failures_total"]) == PARTS
    (version,) = labels_of(families["monolock_build_info"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", version) and families["monolock_build_info"].value(version=version) == 1
    ours = {key: value for name, family in families.items() if name.startswith("monolock_")
            for key, value in family.samples.items()}
    del ours["monolock_build_info", (("version", version),)]
    assert set(ours.values()) == {0}


def test_promtool_finds_nothing_to_say(measured):
    with measured.owner("busy") as owner:
        owner.heartbeat().expect_acquired()
        answer = http.fetch(measured.ops_address, "/metrics")
    assert answer.value("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=answer.body, capture_output=True, timeout=30
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_no_label_holds_what_a_client_said(measured):
    name = 'secret"\n{}\\'
    with measured.owner(name), measured.waiter(name), measured.connect() as refused:
        refused.send(b"secret")
        refused.expect_error(0x13)
        assert "secret" not in http.fetch(measured.ops_address, "/metrics").text


def test_the_process_is_described(measured):
    families = measured.metrics()
    assert 1 < families["process_open_fds"].value() <= measured.descriptors() + 1
    assert families["process_resident_memory_bytes"].value() > 1 << 20
    assert abs(families["process_start_time_seconds"].value() - time.time()) < 300
    cpu = families["process_cpu_seconds_total"].value()
    wait_until(lambda: measured.metrics()["process_cpu_seconds_total"].value() > cpu, "CPU time passes")


# --- the numbers


def test_gauges_follow_the_sessions(measured):
    owner, waiters = measured.owner("a"), [measured.waiter("a") for _ in range(3)]
    other = measured.owner("b")
    settle(measured, connections_active=5, locks_held=2, waiters=3)
    waiters[1].close()
    settle(measured, connections_active=4, locks_held=2, waiters=2)
    owner.close()
    waiters[0].expect_acquired()
    settle(measured, connections_active=3, locks_held=2, waiters=1)
    for client in (waiters[0], waiters[2], other):
        client.close()
    settle(measured, connections_active=0, locks_held=0, waiters=0)


def test_times_are_those_of_every_grant_and_every_end(measured):
    first = measured.owner("timed")
    second = measured.waiter("timed")
    asked_at = time.monotonic()
    leaves = measured.waiter("timed")
    time.sleep(0.3)
    leaves.close()  # never granted: in neither sum
    left_at = time.monotonic()
    first.close()
    second.expect_acquired()
    waited = time.monotonic() - asked_at
    second.close()
    families = settle(measured, connections_active=0, acquires=2)
    told_at = time.monotonic()
    wait, hold = families["monolock_wait_seconds"], families["monolock_hold_seconds"]
    assert wait.value("_count") == hold.value("_count") == 2
    assert 0.3 <= wait.value("_sum") <= waited + 0.1
    assert 0.3 <= hold.value("_sum") <= waited + 0.5
    for name, family in (("wait", wait), ("hold", hold)):
        histogram = families[f"monolock_{name}_duration_seconds"]
        assert histogram.value("_count") == 2 and histogram.value("_sum") == family.value("_sum")
        assert histogram.value("_bucket", le="0.1") == 1 and histogram.value("_bucket", le="10") == 2
    assert families["monolock_handover_duration_seconds"].value("_count") == 1
    assert 0 < families["monolock_handover_duration_seconds"].value("_sum") <= told_at - left_at


REFUSED = {
    "0x10": acquire_frame("n", version=9),
    "0x11": HEARTBEAT_FRAME,
    "0x13": b"GET / HTTP/1.1\r\n\r\n",
    "0x14": acquire_frame(""),
    "0x15": acquire_frame("n" * 256),
    "0x16": acquire_frame(b"\xff"),
    "0x17": acquire_frame("n", 0),
    "0x12": acquire_frame("n") + acquire_frame("n"),
}


def test_errors_are_counted_by_code(measured):
    for index, (code, sent) in enumerate(REFUSED.items()):
        for _ in range(index + 1):
            with measured.connect() as client:
                client.send(sent)
                assert Error in map(type, client.all_frames())
    families = measured.metrics()
    counted = {code: families["monolock_protocol_errors_total"].value(code=code) for code in REFUSED}
    assert counted == {code: index + 1 for index, code in enumerate(REFUSED)}
    assert families["monolock_connections_accepted_total"].value() == sum(counted.values())


def test_reasons_of_an_end(start_server, threads):
    server = start_server("-threads", threads, "-io-timeout", "300ms", "-ops-listen", "127.0.0.1:0")
    expires = server.owner("expires", 50)
    deaf = server.connect(receive_buffer=4096)
    deaf.own("never-reads")
    while deaf.send_available(HEARTBEAT_FRAME * 65536) is not None:
        releases = server.metrics()["monolock_releases_total"]
        if releases.value(reason="io_timeout"):
            break
    server.owner("leaves").close()
    settle(server, connections_active=0)
    releases = server.metrics()["monolock_releases_total"]
    assert {reason: releases.value(reason=reason) for reason in REASONS} == {
        "expired": 1, "io_timeout": 1, "graceful": 1, "force": 0,
    }
    expires.close()
    deaf.close()


class Client:
    """A claim that ends so that it has seen everything the server did about it."""

    def __init__(self, server, tally, random_numbers):
        self.tally = tally
        self.connection = server.connect()
        heartbeats = random_numbers.choice([0, 0, 1, 5])
        self.connection.send(acquire_frame(f"lock-{random_numbers.randrange(4)}") + HEARTBEAT_FRAME * heartbeats)
        tally["accepted"] += 1
        tally["heartbeats"] += heartbeats
        self.granted = self.waited = self.ended = self.leaving = False

    def read(self):
        while (frame := self.connection.poll()) is not None:
            if isinstance(frame, Acquired) and not self.granted:
                self.granted = True
                self.tally["grants"] += 1
                self.tally["promotions"] += self.waited
            elif isinstance(frame, Waiting):
                self.waited = True
            elif isinstance(frame, Error):
                self.tally["errors"] += 1
            elif isinstance(frame, Eof):
                self.ended = True
                self.connection.close()
                return

    def act(self, random_numbers):
        choice = random_numbers.random()
        if self.leaving:
            return
        if choice < 0.6:
            self.connection.heartbeat()
            self.tally["heartbeats"] += 1
        elif self.granted or choice < 0.65:
            self.leave(wrong=random_numbers.random() < 0.3)

    def leave(self, wrong=False):
        self.leaving = True
        if wrong:
            self.connection.send(b"\x7f")
        self.connection.half_close()


@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_equal_what_random_clients_did(measured, seed):
    random_numbers = random.Random(seed)
    tally = dict.fromkeys(["accepted", "heartbeats", "grants", "promotions", "errors"], 0)
    clients, last = [], {}
    deadline = time.monotonic() + max(0.5, 1.5 * min(SCALE, 1))
    leaving = False
    while clients or not leaving:
        leaving = leaving or time.monotonic() > deadline
        assert time.monotonic() < deadline + 20, "never served"
        if not leaving and len(clients) < 30 and random_numbers.random() < 0.5:
            clients.append(Client(measured, tally, random_numbers))
        if clients:
            ready = select.select([client.connection for client in clients], [], [], 0.001)[0]
            for client in [client for client in clients if client.connection in ready]:
                client.read()
            chosen = random_numbers.choice(clients)
            if not chosen.ended:
                chosen.act(random_numbers)
        for client in clients:
            if leaving and not client.leaving and not client.ended and client.granted:
                client.leave()
        clients = [client for client in clients if not client.ended]
        if random_numbers.random() < 0.02:
            now = metrics.counters_of(measured.metrics())
            fallen = [key for key, value in last.items() if now[key] < value]
            assert not fallen, fallen
            last = now
    families = settle(
        measured,
        connections_active=0,
        locks_held=0,
        waiters=0,
        acquires=tally["grants"],
        heartbeats=tally["heartbeats"],
        connections_accepted=tally["accepted"],
    )
    assert tally["grants"] > 30 * min(SCALE, 1)
    assert families["monolock_releases_total"].value(reason="graceful") == tally["grants"]
    assert families["monolock_protocol_errors_total"].value(code="0x13") == tally["errors"]
    for name in ("wait_seconds", "hold_seconds", "wait_duration_seconds", "hold_duration_seconds"):
        assert families[f"monolock_{name}"].value("_count") == tally["grants"]
    assert families["monolock_handover_duration_seconds"].value("_count") == tally["promotions"]
