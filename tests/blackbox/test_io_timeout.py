"""-io-timeout: it bounds the arrival of the ACQUIRE and a blocked write, and nothing else."""

import statistics
import time

import pytest

from support import procfs
from support.protocol import HEARTBEAT_FRAME, Acquired, acquire_frame
from support.server import frees_at_once
from support.waiting import tried_again, wait_until

LIMIT_MS = 500
LIMIT = LIMIT_MS / 1000
MEBIBYTE = 1 << 20


@pytest.fixture
def limited(start_server, threads):
    return start_server("-io-timeout", f"{LIMIT_MS}ms", "-threads", threads)


def check_ended_at_the_limit(client, started_at):
    client.expect_eof(within=LIMIT + 3)
    took = client.received_at - started_at
    assert LIMIT <= took < LIMIT + 0.3, f"ended after {took:.3f} s"


@tried_again
@pytest.mark.parametrize("sent", [0, 1, 7, 8, 11], ids="{} bytes sent".format)
def test_acquire_that_does_not_arrive(limited, sent):
    started_at = time.monotonic()
    with limited.connect() as client:
        client.send(acquire_frame("incomplete")[:sent])
        check_ended_at_the_limit(client, started_at)


@tried_again
def test_acquire_a_byte_at_a_time_is_not_given_longer(limited):
    started_at = time.monotonic()
    frame = acquire_frame("n" * 200)
    with limited.connect() as client:
        for byte in frame:
            if client.send_available(bytes([byte])) is None or client.poll() is not None:
                break
            time.sleep(0.02)
        took = time.monotonic() - started_at
        assert LIMIT <= took < LIMIT + 0.3, f"ended after {took:.3f} s"


def test_acquire_in_two_parts_within_the_limit(limited):
    frame = acquire_frame("two-parts")
    with limited.connect() as client:
        client.send(frame[:5])
        time.sleep(LIMIT / 2)
        client.send(frame[5:])
        client.expect_acquired()


def test_acquire_that_arrived_while_the_server_stood_still(limited):
    """Its pause is not the client's: what is there when it wakes is in time, what is not there is late."""
    frame = acquire_frame("half-way")
    with limited.connect() as whole, limited.connect() as half:
        for client in (whole, half):
            client.send(frame[:5])
        limited.pause()
        try:
            whole.send(frame[5:] + HEARTBEAT_FRAME)
            half.send(frame[5:-1])
            time.sleep(LIMIT * 1.5)
        finally:
            limited.resume()
        token = whole.expect_acquired()
        whole.expect_acquired(token)
        half.expect_end()


def test_silence_of_a_session_is_not_bounded(limited):
    """After the ACQUIRE only the lease counts silence: also for one that came in two parts."""
    with limited.connect() as owner, limited.connect() as waiter:
        frame = acquire_frame("quiet-session")
        owner.send(frame[:3])
        time.sleep(0.1)
        owner.send(frame[3:])
        token = owner.expect_acquired()
        waiter.queue("quiet-session")
        waiter.expect_silence(LIMIT * 2)
        owner.heartbeat().expect_acquired(token)


# --- peers that do not read


def flood(client, ended, within=60):
    """Sends heartbeats and reads nothing until ended() is true; how many the server's side took."""
    chunk = HEARTBEAT_FRAME * 65536
    sent = 0
    deadline = time.monotonic() + within
    while not ended():
        assert time.monotonic() < deadline, f"still there after {sent} heartbeats"
        taken = client.send_available(chunk)
        if taken is None:
            return sent
        sent += taken
        if not taken:
            time.sleep(0.002)
    return sent


@pytest.mark.parametrize("role", ["owner", "waiter"])
@tried_again
def test_peer_that_never_reads(start_server, threads, role):
    """Case S10: bounded memory, ended by the I/O timeout though its lease is a minute, others unharmed."""
    server = start_server("-io-timeout", "1s", "-threads", threads, env=frees_at_once())
    bystander = server.owner("bystander")
    owner = server.connect(**({"receive_buffer": 4096} if role == "owner" else {}))
    owner.own("deaf", 60_000)
    waiter = server.connect(**({"receive_buffer": 4096} if role == "waiter" else {}))
    waiter.queue("deaf", 60_000)
    deaf, witness = (owner, waiter) if role == "owner" else (waiter, owner)
    behind = server.waiter("deaf")
    before = server.descriptors()
    memory = procfs.resident_bytes(server.pid)
    most_memory = memory
    latencies = []

    def ended():
        nonlocal most_memory
        sent_at = time.monotonic()
        bystander.heartbeat().expect_acquired()
        latencies.append(bystander.received_at - sent_at)
        most_memory = max(most_memory, procfs.resident_bytes(server.pid))
        return server.descriptors() < before

    started_at = time.monotonic()
    flood(deaf, ended)
    took = time.monotonic() - started_at
    assert 1 <= took < 30, f"ended after {took:.2f} s"
    assert most_memory - memory < 16 * MEBIBYTE, f"{(most_memory - memory) / MEBIBYTE:.1f} MiB more"
    p99 = statistics.quantiles(latencies, n=100)[98]
    assert p99 < 0.1, f"p99 of the others' heartbeats: {p99:.3f} s"
    if role == "owner":
        witness.expect_acquired(within=2)
        behind.heartbeat().expect_waiting()
    else:
        witness.close()
        behind.expect_acquired(within=2)
    for connection in (bystander, deaf, witness, behind):
        connection.close()


def blocked_owner(server, name, lease_ms):
    """An owner that has sent so many heartbeats that its replies no longer fit, and a waiter behind it."""
    owner = server.connect(receive_buffer=4096)
    owner.own(name, lease_ms)
    waiter = server.waiter(name)
    return owner, waiter


def test_blocked_write_ends_at_the_io_timeout_even_without_more_input(start_server, threads):
    server = start_server("-io-timeout", "1s", "-threads", threads)
    owner, waiter = blocked_owner(server, "blocked", 600_000)
    started_at = time.monotonic()
    # Nine bytes come back for each: far more than both kernels hold for a peer that reads nothing.
    sent = 0
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.3:
        taken = owner.send_available(HEARTBEAT_FRAME * 65536)
        if taken:
            sent += taken
            quiet_since = time.monotonic()
        else:
            time.sleep(0.002)
    waiter.expect_acquired(within=10)
    took = waiter.received_at - started_at
    assert took >= 1, f"ended after {took:.2f} s"
    owner.close()
    waiter.close()


def test_lease_of_a_blocked_session_runs_on(start_server, threads):
    """While a reply cannot be written lastSeen stands still, whatever else the peer sends: the lease,
    here the shorter limit, ends the session although heartbeats lie unread in the server's socket."""
    server = start_server("-io-timeout", "60s", "-threads", threads)
    lease_ms = 1000
    owner, waiter = blocked_owner(server, "blocked-lease", lease_ms)
    granted = []

    def ended():
        frame = waiter.poll()
        if frame is not None:
            granted.append(frame)
        return granted

    started_at = time.monotonic()
    flood(owner, ended, within=30)
    if not granted:
        granted.append(waiter.next_frame())
    assert isinstance(granted[0], Acquired), granted
    assert time.monotonic() - started_at >= lease_ms / 1000
    owner.close()
    waiter.close()


def test_slow_reader_within_the_limit_gets_every_reply(start_server, threads):
    """Backpressure loses nothing: all replies come, in order, once the peer reads."""
    server = start_server("-io-timeout", "20s", "-threads", threads)
    with server.connect(receive_buffer=4096) as client:
        token = client.own("slow-reader")
        sent = 0
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < 0.3 and sent < 3_000_000:
            taken = client.send_available(HEARTBEAT_FRAME * 16384)
            if taken:
                sent += taken
                quiet_since = time.monotonic()
            else:
                time.sleep(0.002)
        client.half_close()
        expected = Acquired(token).token.to_bytes(8, "big")
        got = bytearray()
        deadline = time.monotonic() + 60
        client.sock.settimeout(10)
        while chunk := client.sock.recv(1 << 20):
            got += chunk
            assert time.monotonic() < deadline
        assert len(got) == sent * 9, f"{sent} heartbeats, {len(got) / 9} replies"
        assert got == (b"\x12" + expected) * sent


def test_slow_but_steady_reader_is_not_ended(start_server, threads):
    """The limit runs for the first frame that could not be written, until that frame is out: a peer whose
    replies always wait, though none of them for long, may go on for as long as it likes."""
    server = start_server("-io-timeout", "1s", "-threads", threads)
    with server.connect(receive_buffer=65536) as client:
        client.own("steady")
        started_at = time.monotonic()
        received = 0
        while time.monotonic() - started_at < 3:
            client.send_available(HEARTBEAT_FRAME * 65536)
            time.sleep(0.02)
            client.sock.setblocking(True)
            client.sock.settimeout(5)
            chunk = client.sock.recv(65536)
            client.sock.setblocking(False)
            assert chunk, f"ended after {time.monotonic() - started_at:.2f} s and {received} bytes"
            received += len(chunk)


def test_blocked_session_that_is_closed_frees_its_lock(start_server, threads):
    """Reset while blocked: the peer's word counts though the server reads nothing from it."""
    server = start_server("-io-timeout", "60s", "-threads", threads)
    owner, waiter = blocked_owner(server, "blocked-reset", 600_000)
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 0.3:
        if owner.send_available(HEARTBEAT_FRAME * 65536):
            quiet_since = time.monotonic()
        else:
            time.sleep(0.002)
    owner.reset()
    waiter.expect_acquired(within=2)
    waiter.close()


def test_refused_peer_that_never_reads_is_not_waited_for(start_server, threads):
    """An ERROR that would block is dropped; the lock moves on in the same turn."""
    server = start_server("-io-timeout", "60s", "-threads", threads)
    idle = server.settled_descriptors()
    with server.connect(receive_buffer=4096) as client:
        client.own("deaf-culprit")
        waiter = server.waiter("deaf-culprit")
        client.heartbeat(1000)
        client.send(b"\x7f")
        waiter.expect_acquired(within=2)
        waiter.close()
    wait_until(lambda: server.descriptors() <= idle, "all closed")


@tried_again
def test_silent_peers_delay_nobody(start_server, threads):
    """Hundreds that connect and say nothing, or half of an ACQUIRE: others are granted as ever."""
    server = start_server("-io-timeout", "1s", "-threads", threads)
    idle = server.settled_descriptors()
    silent = [server.connect() for _ in range(300)]
    for client in silent[::2]:
        client.send(acquire_frame("half-said")[:6])
    for index in range(100):
        asked_at = time.monotonic()
        with server.connect() as client:
            client.own(f"beside-{index}")
            assert client.received_at - asked_at < 0.1
    server.wait_descriptors(idle, within=5)
    for client in silent:
        client.expect_eof()
        client.close()
