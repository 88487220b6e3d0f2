"""What the service manager is told, over a notify socket of the test's own (cases H7 and H11)."""

import signal
import time

import pytest

from support.connection import Connection
from support.http import fetch
from support.protocol import SHUTTING_DOWN
from support.server import parse_bound, run_to_end
from support.service_manager import NotifySocket
from support.strace import shard_threads, standing_still
from support.tls_files import TlsFiles
from support.waiting import stays_true, wait_until


@pytest.fixture
def manager(tmp_path):
    with NotifySocket(tmp_path / "notify") as made:
        yield made


def monotonic_usec():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def serving(server):
    return f"serving on 127.0.0.1:{server.port}"


# --- start


def test_ready_once_it_serves(start_server, threads, manager):
    """Who connects on hearing READY=1 is served."""
    start_server("-threads", threads, env=manager.env(), wait=False)
    message = manager.next()
    assert list(message) == ["READY", "STATUS"] and message["READY"] == "1"
    with Connection(parse_bound(message["STATUS"].removeprefix("serving on "))) as client:
        client.own("first")


def test_a_start_that_fails_is_never_ready(manager, tmp_path, authority):
    files = TlsFiles(tmp_path, authority, rules="{}")
    result = run_to_end("-listen", "127.0.0.1:0", *files.flags(), env=manager.env())
    assert result.returncode == 1
    assert manager.waiting() == []


def test_a_check_is_no_start(manager):
    assert run_to_end("-check", env=manager.env(watchdog=1)).returncode == 0
    assert manager.waiting() == []


def test_in_the_abstract_namespace(start_server, tmp_path):
    with NotifySocket(f"@{tmp_path}/notify") as manager:
        server = start_server(env=manager.env())
        assert manager.next() == {"READY": "1", "STATUS": serving(server)}


def test_a_service_manager_that_is_not_there_harms_nobody(start_server, tmp_path):
    server = start_server(env={"NOTIFY_SOCKET": str(tmp_path / "nobody"), "WATCHDOG_USEC": "10000"})
    server.signal(signal.SIGHUP)
    server.owner("served").close()
    server.stop()
    assert [line["reason"] for line in server.loud_lines()] == ["No such file or directory"], "one line, and only once"


@pytest.mark.parametrize("address", ["relative", "vsock:2:1234", "/" + "long" * 50])
def test_an_address_that_is_none_is_said(start_server, address):
    server = start_server(env={"NOTIFY_SOCKET": address})
    server.owner("served").close()
    server.stop()
    (line,) = server.loud_lines()
    assert line["level"] == "warn" and line["notify_socket"] == address


def test_a_service_manager_that_does_not_listen_holds_nothing_up(start_server, manager):
    server = start_server(env=manager.env(watchdog=0.001))  # more words of life than the kernel keeps
    time.sleep(0.1)
    server.signal(signal.SIGHUP)
    server.wait_record(lambda record: "reload" in record["msg"])
    server.stop()
    assert len(manager.waiting()) > 1


# --- reload


def reload(server, manager):
    """The STATUS after SIGHUP: one RELOADING=1 since then, and then READY=1."""
    before = monotonic_usec()
    server.signal(signal.SIGHUP)
    begins, ends = manager.next(), manager.next()
    assert list(begins) == ["RELOADING", "MONOTONIC_USEC", "STATUS"] and begins["RELOADING"] == "1"
    assert before <= int(begins["MONOTONIC_USEC"]) <= monotonic_usec()
    assert list(ends) == ["READY", "STATUS"] and ends["READY"] == "1"
    return ends["STATUS"]


def test_reload_is_told_whatever_its_outcome(start_server, manager, tmp_path, authority):
    files = TlsFiles(tmp_path, authority, rules=[("client", ["*"])])
    server = start_server(tls=files, env=manager.env())
    manager.until("READY")
    assert reload(server, manager) == serving(server)
    files.replace(files.key, b"garbage")
    assert reload(server, manager) == serving(server) + "; the last reload failed, and the log says why: tls"
    files.permit("half of {")
    assert reload(server, manager) == serving(server) + "; the last reload failed, and the log says why: tls, acl"
    files.serve(authority.issue_server())
    files.permit([("client", ["only"])])
    assert reload(server, manager) == serving(server)
    server.owner("only").close()


def test_reload_of_nothing_is_told_too(start_server, manager):
    """Or `systemctl reload` would wait for it until its time is up."""
    server = start_server(env=manager.env())
    manager.until("READY")
    assert reload(server, manager) == serving(server)


def test_a_storm_of_reloads_ends_with_one_that_began_after_the_last_signal(start_server, manager, tmp_path):
    server = start_server("-audit-log", str(tmp_path / "audit"), env=manager.env())
    manager.until("READY")
    first_at = monotonic_usec()
    for _ in range(50):
        server.signal(signal.SIGHUP)
        last_at = monotonic_usec()
        time.sleep(0.001)
    messages = []
    while not messages or int(messages[-2]["MONOTONIC_USEC"]) < last_at:
        messages += manager.until("READY")
    assert [list(message)[0] for message in messages] == ["RELOADING", "READY"] * (len(messages) // 2)
    loads_max = 2 + (monotonic_usec() - first_at) / 100_000
    assert len(messages) // 2 <= loads_max, "requests that come together are answered together"


# --- shutdown


def test_stopping_at_once_and_through_the_whole_delay(start_server, manager):
    server = start_server(
        "-shutdown-delay", "1s", "-io-timeout", "1s", "-ops-listen", "127.0.0.1:0", env=manager.env()
    )
    manager.until("READY")
    server.signal(signal.SIGTERM)
    begins = manager.next()
    assert list(begins) == ["STOPPING", "EXTEND_TIMEOUT_USEC", "STATUS"] and begins["STOPPING"] == "1"
    assert int(begins["EXTEND_TIMEOUT_USEC"]) >= 3_000_000, "the delay, and the I/O timeout twice"
    assert begins["STATUS"] == "shutting down: serving for another 1s"
    assert fetch(server.ops_address, "/healthz").status == 503
    late = server.owner("late")
    server.signal(signal.SIGHUP)  # is obeyed, and no service that stops is ready again
    late.expect_refused(SHUTTING_DOWN)
    late.close()
    assert server.wait_exit() == 0
    assert manager.waiting() == [{"STATUS": "shutting down: all clients are told to go"}]


# --- the watchdog


def test_nothing_is_kept_alive_unasked(start_server, manager):
    variables = manager.env(watchdog=0.02) | {"WATCHDOG_PID": "1"}
    server = start_server("-ops-listen", "127.0.0.1:0", env=variables)
    manager.until("READY")
    time.sleep(0.1)
    server.stop()
    assert not any("WATCHDOG" in message for message in manager.waiting())


def test_kept_alive_only_while_the_shards_turn(start_server, manager):
    """Case H7 without -ops-listen: a shard is kept from its next system call for longer than is borne."""
    server = start_server("-threads", "2", env=manager.env(watchdog=0.4))
    assert manager.until("WATCHDOG")[1:] == [{"WATCHDOG": "1"}]
    with standing_still(shard_threads(server.pid)[0], 8, ":when=1"):
        server.wait_record(lambda record: "stalled" in record["msg"], within=10)
        manager.waiting()
        stays_true(lambda: manager.waiting() == [], "no word of life", for_seconds=0.6, interval=0.1)
        assert server.records()[-1]["level"] == "error", "it still stands still"
        manager.until("WATCHDOG")
    wait_until(lambda: "turns again" in server.records()[-1]["msg"], "the shard turns again")


def test_kept_alive_while_it_shuts_down(start_server, manager):
    server = start_server("-shutdown-delay", "300ms", env=manager.env(watchdog=0.1))
    manager.until("READY")
    server.signal(signal.SIGTERM)
    manager.until("STOPPING")
    assert server.wait_exit() == 0
    assert {"WATCHDOG": "1"} in manager.waiting()
