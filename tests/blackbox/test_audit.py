"""The audit log: every grant and every end, in order, once, whatever the names."""

import contextlib
import os
import random
import select
import signal
import stat
import time

import pytest

from support import audit
from support.protocol import Acquired, acquire_frame
from support.server import run_to_end
from support.tls_files import TlsFiles
from support.waiting import SCALE, wait_until
from test_log import HOSTILE_NAMES


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.log"


@pytest.fixture
def audited(start_server, threads, path):
    return start_server("-threads", threads, "-audit-log", str(path))


def wait_records(path, count, within=5.0):
    def enough():
        text = path.read_text(encoding="utf-8")
        return text.endswith("\n") and text.count("\n") >= count

    wait_until(enough, f"{count} lines in the audit log", within)
    return audit.read(path)


def address_of(connection):
    return f"127.0.0.1:{connection.local_port}"


def test_a_grant_its_end_and_the_next_grant(audited, path):
    owner = audited.connect()
    token = owner.own("nightly")
    waiter = audited.waiter("nightly")
    time.sleep(0.05)
    first, second = address_of(owner), address_of(waiter)
    owner.close()
    next_token = waiter.expect_acquired()
    waiter.close()
    granted, released, next_granted, next_released = wait_records(path, 4)
    assert (granted["event"], granted["token"], granted["remote_addr"]) == ("granted", token, first)
    assert granted["lock"] == "nightly" and granted["identity"] == ""
    assert granted["wait_ms"] == 0
    assert (released["event"], released["token"], released["remote_addr"]) == ("released", token, first)
    assert released["reason"] == "graceful"
    assert 50 <= released["held_ms"] < 5000
    assert (next_granted["event"], next_granted["token"], next_granted["remote_addr"]) == (
        "granted",
        next_token,
        second,
    )
    assert 50 <= next_granted["wait_ms"] <= released["held_ms"]
    assert (next_released["event"], next_released["token"]) == ("released", next_token)


def test_reasons(start_server, path):
    server = start_server("-threads", "1", "-io-timeout", "200ms", "-audit-log", str(path))
    server.owner("closed").close()
    server.owner("reset").reset()
    wrong = server.connect()
    wrong.own("wrong")
    wrong.send(b"\x7f")
    wrong.expect_error(0x13)
    wrong.close()
    silent = server.connect()
    silent.own("silent", lease_ms=10)
    silent.expect_eof()
    silent.close()
    never_reads = server.connect(receive_buffer=4096)
    never_reads.own("never reads")
    with contextlib.suppress(AssertionError):  # at some point nothing is taken any more
        while never_reads.send(b"\x02" * 65536, within=0.1):
            pass
    reasons = {"closed": "graceful", "reset": "graceful", "wrong": "graceful", "silent": "expired"}
    reasons["never reads"] = "io_timeout"
    records = wait_records(path, 2 * len(reasons))
    ends = {record["lock"]: record["reason"] for record in records if record["event"] == "released"}
    assert ends == reasons
    audit.check(records)
    never_reads.close()


def test_whatever_the_names_every_line_parses_alone(audited, path):
    """Case H10."""
    for done, name in enumerate(HOSTILE_NAMES):
        audited.owner(name).close()
        wait_records(path, 2 * (done + 1))  # only the records of one lock have an order of their own
    audited.stop()
    records = audit.read(path)
    assert [record["lock"] for record in records if record["event"] == "granted"] == HOSTILE_NAMES
    audit.check(records)
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) == text.count("\n") == 2 * len(HOSTILE_NAMES)


def test_waiters_and_refused_claims_are_no_events(audited, path):
    owner = audited.owner("lock")
    descriptors = audited.descriptors()
    audited.waiter("lock").close()
    with audited.connect() as refused:
        refused.send(b"\x02")
        refused.expect_error(0x11)
    audited.wait_descriptors(descriptors)  # the server has seen the waiter leave, and will not promote it
    owner.close()
    audited.stop()
    assert [record["event"] for record in audit.read(path)] == ["granted", "released"]


def test_identities_and_what_the_rules_refuse(start_server, threads, authority, tmp_path, path):
    """Denied at the ACQUIRE and, by new rules, in the queue (S11); identities as hostile as names (H10)."""
    hostile = 'w "1"\\\n\x7f\u2028'
    rules = [(hostile, ["*"]), ("client", ["db/*"])]
    files = TlsFiles(tmp_path, authority, rules=rules)
    server = start_server("-threads", threads, "-audit-log", str(path), tls=files)
    owner = server.connect(credentials=authority.issue_client(hostile))
    token = owner.own("db/a")
    with server.connect() as client:
        client.acquire("web").expect_refused(0x18)
        refused = address_of(client)
    waiter = server.connect().acquire("db/a")
    waiter.expect_waiting()
    files.permit(rules[:1])
    server.reload_well()
    waiter.expect_error(0x18)
    gone = address_of(waiter)
    owner.close()
    waiter.close()
    server.stop()
    events = [
        (record["event"], record["lock"], record["identity"], record["remote_addr"]) for record in audit.read(path)
    ]
    assert [event for event in events if event[0] == "denied"] == [
        ("denied", "web", "client", refused),
        ("denied", "db/a", "client", gone),
    ]
    assert [event for event in events if event[0] != "denied"] == [
        (event, "db/a", hostile, events[0][3]) for event in ("granted", "released")
    ]
    seen = audit.check(audit.read(path))
    assert list(seen.ends) == [token]


def test_probes_leave_no_record(audited, path):
    """Case S15."""
    for number in range(200):
        probe = audited.connect()
        if number % 2:
            probe.reset()
        else:
            probe.close()
    audited.stop()
    assert path.read_bytes() == b""
    assert not [record for record in audited.records() if record["level"] in ("warn", "error")]


def test_shutdown_ends_and_flushes_everything(start_server, threads, path):
    server = start_server("-threads", threads, "-io-timeout", "300ms", "-audit-log", str(path))
    owners = [server.owner(f"lock-{number}") for number in range(300)]
    waiters = [server.waiter(f"lock-{number}") for number in range(20)]
    server.stop()
    seen = audit.check(audit.read(path))
    assert len(seen.grants) == len(owners) and seen.grants.keys() == seen.ends.keys()
    assert {record["reason"] for record in seen.ends.values()} == {"graceful"}
    for connection in owners + waiters:
        connection.close()


def test_a_second_signal_still_writes_what_was_recorded(start_server, path):
    server = start_server("-shutdown-delay", "1m", "-audit-log", str(path))
    owners = [server.owner(f"lock-{number}") for number in range(50)]
    server.signal(signal.SIGTERM)
    wait_until(lambda: any("shutting down" in line for line in server.lines()), "the first signal is taken")
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 1
    assert len(audit.read(path)) >= len(owners)
    for connection in owners:
        connection.close()


def test_standard_output(start_server):
    server = start_server("-audit-log", "-")
    server.owner("nightly").close()
    wait_until(lambda: server.stdout().count("\n") == 2, "two lines on standard output")
    server.signal(signal.SIGHUP)
    server.owner("nightly").close()
    server.stop()
    records = audit.parse_text(server.stdout())
    assert [record["event"] for record in records] == ["granted", "released"] * 2
    audit.check(records)


def test_the_variable_and_a_file_that_is_there_already(start_server, path):
    path.write_text('{"before":1}\n', encoding="utf-8")
    server = start_server(env={"MONOLOCK_AUDIT_LOG": str(path)})
    server.owner("nightly").close()
    server.stop()
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    assert first == '{"before":1}'
    assert len(audit.parse_text(rest)) == 2


def test_what_a_crash_left_of_a_line_stays_a_line(start_server, path):
    path.write_text('{"time":"2026-01-01T00:0', encoding="utf-8")
    server = start_server("-audit-log", str(path))
    server.owner("nightly").close()
    server.stop()
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    assert first == '{"time":"2026-01-01T00:0'
    assert len(audit.parse_text(rest)) == 2


def test_a_new_file_is_for_owner_and_group(start_server, path):
    start_server("-audit-log", str(path), before_exec=lambda: os.umask(0o022))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("bad", ["missing/audit.log", "."])
def test_a_file_that_cannot_be_opened_fails_the_start(tmp_path, bad):
    target = str(tmp_path / bad)
    ended = run_to_end("-listen", "127.0.0.1:0", "-audit-log", target)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1 and target in ended.stderr
    assert "No such file" in ended.stderr or "Is a directory" in ended.stderr


def test_without_the_flag_nothing_is_written(start_server, tmp_path):
    server = start_server()
    server.owner("nightly").close()
    server.stop()
    assert server.stdout() == "" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_workload_is_recorded_in_full(start_server, threads, path, seed):
    """Every grant that a client saw, and its one end, in an order that could have been."""
    server = start_server("-threads", threads, "-audit-log", str(path))
    choose = random.Random(seed)
    clients, tokens = [], {}
    deadline = time.monotonic() + 2.0 * min(SCALE, 1)
    while time.monotonic() < deadline or clients:
        if time.monotonic() < deadline and len(clients) < 30:
            client = server.connect()
            name = f"lock-{choose.randrange(4)}"
            client.send(acquire_frame(name, 60_000))
            clients.append((client, name))
        for client, name in clients:
            while isinstance(frame := client.poll(), Acquired):
                tokens[frame.token] = (name, address_of(client))
        leaving = choose.choice(clients)
        if choose.random() < 0.3:
            clients.remove(leaving)
            leaving[0].reset() if choose.random() < 0.3 else leaving[0].close()
        else:
            select.select([client for client, _ in clients], [], [], 0.001)
    server.stop()
    seen = audit.check(audit.read(path))
    assert len(tokens) > 20 * min(SCALE, 1)
    recorded = {token: (record["lock"], record["remote_addr"]) for token, record in seen.grants.items()}
    assert tokens.items() <= recorded.items(), "a grant that was not recorded"
    assert seen.grants.keys() == seen.ends.keys(), "a grant without its end"
