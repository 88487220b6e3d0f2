"""SIGTERM and SIGINT: what everyone connected hears, what no longer happens, and how the server ends."""

import signal
import time

import pytest

from support import audit
from support.protocol import (
    CANONICAL_REASONS,
    HEARTBEAT_FRAME,
    SHUTTING_DOWN,
    Acquired,
    Eof,
    Error,
    Waiting,
    acquire_frame,
)
from support.strace import shard_threads, standing_still
from support.waiting import scaled, wait_until

SIGNALS = [signal.SIGTERM, signal.SIGINT]
REASON = CANONICAL_REASONS[SHUTTING_DOWN]


def second_signal(server, number=signal.SIGTERM):
    """A second signal while the first is being obeyed."""
    server.signal(number)
    assert server.wait_exit(within=2) == 1


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_idle_server_ends_with_zero(start_server, threads, number):
    server = start_server("-threads", threads)
    server.signal(number)
    assert server.wait_exit(within=3) == 0


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_signals_come_through_whatever_mask_was_inherited(start_server, number):
    """Whoever waits for signals with sigwait blocks them, and starts programs that way."""
    everything = signal.valid_signals()
    server = start_server(before_exec=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, everything))
    server.signal(signal.SIGHUP)
    server.wait_record(lambda record: record["msg"].startswith("reload"))
    server.signal(number)
    assert server.wait_exit() == 0


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_everyone_is_told_and_nobody_is_promoted(start_server, threads, number):
    server = start_server("-threads", threads)
    owners = [server.owner(f"told-{index}") for index in range(20)]
    waiters = [server.waiter(f"told-{index % 20}") for index in range(60)]
    silent = [server.connect() for _ in range(5)]
    half_said = [server.connect() for _ in range(5)]
    for client in half_said:
        client.send(acquire_frame("told-0")[:9])
        client.wait_delivered()
    wait_until(lambda: server.descriptors() >= 90, "all are accepted")
    server.signal(number)
    for client in owners + waiters + silent + half_said:
        client.expect_refused(SHUTTING_DOWN, REASON)  # and so no ACQUIRED before it
        client.close()
    assert server.wait_exit(within=3) == 0


def test_nobody_is_promoted_while_owners_leave(start_server, threads):
    """Owners leave on their 0x01 at once; none of their waiters, still being told, may be granted."""
    for _ in range(scaled(5)):
        server = start_server("-threads", threads)
        owners = [server.owner(f"leaves-{index}") for index in range(30)]
        waiters = [server.waiter(f"leaves-{index}") for index in range(30)]
        server.signal(signal.SIGTERM)
        for owner in owners:
            owner.expect_error(SHUTTING_DOWN)
            owner.close()
        for waiter in waiters:
            waiter.expect_refused(SHUTTING_DOWN)
            waiter.close()
        assert server.wait_exit(within=3) == 0


def test_new_connections_are_refused_afterwards(start_server):
    server = start_server()
    owner = server.owner("stays")  # it does not close, so the server lingers
    server.signal(signal.SIGTERM)
    owner.expect_error(SHUTTING_DOWN)
    with pytest.raises(ConnectionRefusedError):
        server.connect()
    owner.close()
    assert server.wait_exit(within=3) == 0


def test_connections_that_nobody_accepted_yet_are_told_too(start_server, threads):
    """They wait in the listener's backlog while the signal arrives: not admitted, so 0x01, not a reset."""
    server = start_server("-threads", threads)
    server.pause()
    try:
        clients = [server.connect() for _ in range(20)]
        for client in clients[::2]:
            client.acquire("backlog")
        server.signal(signal.SIGTERM)
    finally:
        server.resume()
    for client in clients:
        frames = client.all_frames()
        assert frames[-2:] == [Error(SHUTTING_DOWN, REASON), Eof()], frames
        assert all(isinstance(frame, (Acquired, Waiting)) for frame in frames[:-2]), frames
        client.close()
    assert server.wait_exit(within=3) == 0


def test_messages_before_the_end_are_answered_before_it(start_server):
    server = start_server()
    with server.connect() as client:
        client.send(acquire_frame("in-order") + HEARTBEAT_FRAME * 2)
        token = client.expect_acquired()
        server.signal(signal.SIGTERM)
        assert client.all_frames() == [Acquired(token), Acquired(token), Error(SHUTTING_DOWN, REASON), Eof()]
    assert server.wait_exit(within=3) == 0


def test_delay_is_service_as_ever(start_server, threads):
    """While it lasts claims are admitted and promoted; then everyone is told."""
    server = start_server("-shutdown-delay", "1s", "-threads", threads)
    owner, waiter = server.owner("delayed"), server.waiter("delayed")
    started_at = time.monotonic()
    server.signal(signal.SIGTERM)
    time.sleep(0.3)
    late = server.waiter("delayed")
    fresh = server.owner("fresh")
    owner.heartbeat().expect_acquired()
    owner.close()
    waiter.expect_acquired(within=0.5)
    late.expect_silence(0.05)
    for client in (waiter, late, fresh):
        client.expect_refused(SHUTTING_DOWN)
        assert client.received_at - started_at >= 1
        client.close()
    assert server.wait_exit(within=3) == 0
    assert 1 <= time.monotonic() - started_at < 2


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_second_signal_ends_the_delay_at_once(start_server, number):
    server = start_server("-shutdown-delay", "1m")
    owner = server.owner("impatient")
    server.signal(signal.SIGTERM)
    time.sleep(0.1)
    owner.heartbeat().expect_acquired()
    second_signal(server, number)
    owner.close()


def test_second_signal_ends_the_wait_for_lingering_peers(start_server):
    server = start_server("-io-timeout", "1m")
    owner = server.owner("lingers")
    server.signal(signal.SIGINT)
    owner.expect_error(SHUTTING_DOWN)
    second_signal(server)
    owner.close()


def test_peers_that_stay_delay_the_end_by_the_io_timeout_at_most(start_server, threads):
    """Silent ones, one that goes on talking, and one whose buffers are full of replies it never reads."""
    server = start_server("-io-timeout", "1s", "-threads", threads)
    stay = [server.owner(f"stays-{index}") for index in range(5)]
    deaf = server.connect(receive_buffer=4096)
    deaf.own("stays-deaf")
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.1:
        if deaf.send_available(HEARTBEAT_FRAME * 65536):
            quiet_since = time.monotonic()
    started_at = time.monotonic()
    server.signal(signal.SIGTERM)

    def ended():
        stay[0].send_available(b"\x02")
        return server.exit_code() is not None

    wait_until(ended, "the server ends", within=5)
    assert server.exit_code() == 0
    assert time.monotonic() - started_at < 3
    for client in [*stay, deaf]:
        client.close()


def test_a_stalled_shard_does_not_keep_the_server(start_server, tmp_path):
    """Clients of the other shard are told, what happened is in the audit log, and the end is an error that says so."""
    log = tmp_path / "audit.log"
    server = start_server("-threads", "2", "-io-timeout", "300ms", "-audit-log", str(log))
    owners = [server.owner(f"lock-{index}") for index in range(16)]
    with standing_still(shard_threads(server.pid)[0], 60):
        for _ in range(2):  # the first beats may be answered by the wait that was under way
            for owner in owners:
                owner.heartbeat()
            time.sleep(0.3)
            answered = [owner for owner in owners if owner.poll() is not None]
        assert 0 < len(answered) < len(owners)
        addresses = sorted(f"127.0.0.1:{owner.local_port}" for owner in answered)
        signalled_at = time.monotonic()
        server.signal(signal.SIGTERM)
        for owner in answered:
            owner.expect_error(SHUTTING_DOWN, within=5)
            owner.close()
        server.wait_record(lambda record: record["level"] == "error" and "stalled" in record["msg"], within=10)
        assert time.monotonic() - signalled_at < 6
    assert server.wait_exit(within=5) == 1  # the tracer, too, kept the process
    assert sorted(record["remote_addr"] for record in audit.read(log) if record["event"] == "released") == addresses
    for owner in owners:
        owner.close()


def test_end_waits_for_nobody_when_all_have_left(start_server):
    """A long I/O timeout does not matter if every peer closes."""
    server = start_server("-io-timeout", "1m")
    clients = [server.owner(f"leaves-{index}") for index in range(50)]
    server.signal(signal.SIGTERM)
    for client in clients:
        client.expect_refused(SHUTTING_DOWN)
        client.close()
    assert server.wait_exit(within=2) == 0


def test_shutdown_with_a_thousand_sessions(start_server, threads):
    count = scaled(1000, at_least=100)
    server = start_server("-threads", threads)
    clients = [server.connect() for _ in range(count)]
    for index, client in enumerate(clients):
        client.acquire(f"crowd-{index % 100}")
    for client in clients:
        assert isinstance(client.next_frame(), (Acquired, Waiting))
    started_at = time.monotonic()
    server.signal(signal.SIGTERM)
    for client in clients:
        client.expect_refused(SHUTTING_DOWN)
        client.close()
    assert server.wait_exit(within=5) == 0
    assert time.monotonic() - started_at < 5


def test_no_child_and_no_descriptor_of_ours_stays(start_server):
    """The process is gone, and its port with it."""
    server = start_server()
    owner = server.owner("last")
    port = server.port
    server.signal(signal.SIGTERM)
    owner.expect_refused(SHUTTING_DOWN)
    owner.close()
    assert server.wait_exit(within=3) == 0
    again = start_server(listen=f"127.0.0.1:{port}")
    again.owner("last").close()
