"""Handshakes cost a millisecond of computing each; that is nobody else's business."""

import contextlib
import os
import signal
import time

import pytest

from support.protocol import HEARTBEAT_FRAME
from support.waiting import scaled, tried_again, wait_until

PROMPT = 0.1
SILENT = 500


def crowd(server, count=SILENT):
    """Connections that send nothing, or half of a hello."""
    clients = [server.connect(handshake=False) for _ in range(count)]
    for client in clients[::2]:
        client.handshake_step()
        hello = client.take_sealed()
        client.send_raw(hello[: len(hello) // 2])
    return clients


@tried_again
def test_silent_peers_delay_nobody(start_server, threads, mtls_files):
    """Case S6: others are granted within 100 ms all the time, handshake included; the silent ones go at the
    I/O timeout, and each is counted (here: told, at debug level)."""
    server = start_server("-io-timeout", "2s", "-threads", threads, "-log-level", "debug", tls=mtls_files)
    idle = server.settled_descriptors()
    started_at = time.monotonic()
    silent = crowd(server)
    crowded_at = time.monotonic()
    slowest = 0.0
    index = 0
    while time.monotonic() - started_at < 1.8:
        asked_at = time.monotonic()
        with server.connect() as client:
            client.own(f"beside-{index}")
            slowest = max(slowest, client.received_at - asked_at)
        index += 1
    assert index > 20
    assert slowest < PROMPT, f"{slowest * 1000:.0f} ms"
    assert server.descriptors() >= idle + SILENT, "some went before their time"
    server.wait_descriptors(idle, within=crowded_at + 2.5 - time.monotonic())
    for client in silent:
        client.sock.settimeout(1)
        while client.sock.recv(4096):
            pass
        client.vanish()
    failed = [record for record in server.records() if record["level"] == "debug" and "handshake" in record["msg"]]
    assert len(failed) == SILENT, f"{len(failed)} told"
    assert not server.loud_lines()


@contextlib.contextmanager
def storm(server, processes=2):
    """Processes that shake hands as fast as they can; yields a function that counts the handshakes."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    pids = []
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                while True:
                    server.connect().vanish()
                    os.write(writer, b"x")
            os._exit(0)
        pids.append(pid)
    os.close(writer)
    done = 0

    def count():
        nonlocal done
        with contextlib.suppress(BlockingIOError):
            done += len(os.read(reader, 65536))
        return done

    try:
        yield count
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(reader)


@tried_again
def test_a_storm_of_handshakes_delays_no_heartbeat(start_server, threads, mtls_files):
    """With the silent ones there as well: answers come within a tenth of the lease."""
    lease_ms = 1000
    server = start_server("-threads", threads, tls=mtls_files)
    sessions = [server.owner(f"lives-{index}", lease_ms) for index in range(8)]
    silent = crowd(server)
    slowest = 0.0
    with storm(server) as handshakes:
        wait_until(lambda: handshakes() > 20, "the storm")
        until = time.monotonic() + 2
        while time.monotonic() < until:
            for session in sessions:
                session.heartbeat().expect_acquired(within=lease_ms / 1000)
                slowest = max(slowest, session.received_at - session.sent_at)
            time.sleep(0.01)
        assert handshakes() > 200
    assert slowest < lease_ms / 1000 / 10, f"{slowest * 1000:.0f} ms"
    for client in silent + sessions:
        client.vanish()


@tried_again
@pytest.mark.parametrize("stage", ["hello", "last flight"])
def test_handshakes_that_arrive_together_let_heartbeats_through(start_server, mtls_files, stage):
    """Hundreds of steps are ready in one turn of the only loop: heartbeats wait for one of them, not for
    all, however the kernel orders their sockets."""
    server = start_server("-threads", "1", tls=mtls_files)
    sessions = [server.owner(f"lives-{index}") for index in range(4)]
    together = scaled(400)
    clients = [server.connect(handshake=False) for _ in range(together)]
    flights = []
    for client in clients:
        client.handshake_step()
        flights.append(client.take_sealed())
        if stage == "last flight":
            client.send_raw(flights.pop())
            client.handshake(send_flight=flights.append)
    server.pause()
    try:
        for client, flight in zip(clients, flights):
            client.send_raw(flight)
        for session in sessions:
            session.heartbeat()
        resumed_at = time.monotonic()
    finally:
        server.resume()
    for session in sessions:
        session.expect_acquired()
    slowest = max(session.received_at for session in sessions) - resumed_at
    for client in clients:  # and all of them are served
        client.handshake(within=20)
        client.send(HEARTBEAT_FRAME)
    for client in clients:
        client.expect_refused(0x11, within=20)
        client.close()
    whole = time.monotonic() - resumed_at
    for session in sessions:
        session.close()
    assert slowest < 0.05 and slowest < whole / 4, f"{slowest * 1000:.0f} ms of {whole * 1000:.0f} ms"
