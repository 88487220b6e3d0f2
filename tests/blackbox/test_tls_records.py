"""No cut of TLS records and TCP segments is noticed, in the handshake or after it."""

import random
import socket
import statistics
import time

import pytest

from support import procfs
from support.protocol import HEARTBEAT_FRAME, Acquired, Eof, acquire_frame
from support.server import frees_at_once
from support.tls import RECORD_MAX, TLS_1_2, TLS_1_3
from support.waiting import NeverAllowed, scaled, tried_again

both_versions = pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])


@pytest.fixture
def server(start_server, threads, tls_files):
    return start_server("-threads", threads, tls=tls_files)


@pytest.fixture
def one_server(start_server, tls_files):
    return start_server("-threads", "2", tls=tls_files)


# --- handshakes cut into pieces


@both_versions
def test_handshake_a_byte_at_a_time(one_server, version):
    with one_server.connect(version=version, handshake=False) as client:

        def trickle(flight):
            for at in range(len(flight)):
                client.send_raw(flight[at : at + 1])
                client.wait_delivered()

        client.handshake(send_flight=trickle)
        client.own("trickled")


@both_versions
def test_handshake_cut_anywhere(one_server, version):
    """Each flight in two segments, the cut a little further each time."""
    for at in range(1, 420, 12):
        with one_server.connect(version=version, handshake=False) as client:

            def cut(flight):
                client.send_raw(flight[:at])
                client.wait_delivered()
                client.send_raw(flight[at:])

            client.handshake(send_flight=cut)
            client.own("cut")


@pytest.mark.parametrize("size", [1, 50])
def test_hello_in_many_records(one_server, size):
    with one_server.connect(handshake=False) as client:
        assert client.handshake_step() is None
        hello = client.take_sealed()
        head, body = hello[:3], hello[5:]
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        client.send_raw(b"".join(head + len(piece).to_bytes(2, "big") + piece for piece in pieces))
        client.handshake()
        client.own("fragmented")


def handshake_but_for_the_last_flight(client):
    """TLS 1.3: done on the client's side; the bytes that tell the server so are returned unsent."""
    flights = []

    def send(flight):
        if not flights:
            client.send_raw(flight)
        flights.append(flight)

    client.handshake(send_flight=send)
    assert len(flights) == 2
    return flights[1]


@pytest.mark.parametrize("heartbeats", [0, 1, 700])
@pytest.mark.parametrize("mutual", [False, True], ids=["TLS", "mTLS"])
def test_claim_in_the_segment_that_ends_the_handshake(start_server, threads, tls_files, mtls_files, mutual, heartbeats):
    """What OpenSSL has decrypted, or holds undecrypted, never makes the socket readable again: the server
    must look for it, on the shard that shook hands and on the one the name belongs to."""
    server = start_server("-threads", threads, tls=mtls_files if mutual else tls_files)
    for index in range(6):
        frames = acquire_frame(f"at-once-{index}") + HEARTBEAT_FRAME * heartbeats
        for records in ([frames], [frames[:9], frames[9:]], [frames[at : at + 1] for at in range(len(frames))]):
            with server.connect(handshake=False, version=TLS_1_3) as client:
                last_flight = handshake_but_for_the_last_flight(client)
                client.send_raw(last_flight + b"".join(client.seal(record) for record in records if record))
                token = client.expect_acquired()
                for _ in range(heartbeats):
                    client.expect_acquired(token)
                assert client.poll() is None
                client.half_close()
                assert client.all_frames() == [Eof()]


def test_whole_life_in_one_segment(server):
    """Finished, ACQUIRE, heartbeats, close_notify and FIN are there before the server looks."""
    for index in range(6):
        with server.connect(handshake=False, version=TLS_1_3) as client:
            last_flight = handshake_but_for_the_last_flight(client)
            server.pause()
            try:
                claim = client.seal(acquire_frame(f"life-{index}"))
                client.send_raw(last_flight + claim + client.seal(HEARTBEAT_FRAME * 2))
                client.half_close()
            finally:
                server.resume()
            frames = client.all_frames()
            assert [type(frame) for frame in frames] == [Acquired] * 3 + [Eof], frames
            client.expect_fin()


# --- sessions cut into pieces

STREAM_HEARTBEATS = 20


def all_at_once(client, stream):
    client.send(stream)


def record_for_each_byte(client, stream):
    client.send_records(*(stream[at : at + 1] for at in range(len(stream))))


def record_and_segment_for_each_byte(client, stream):
    for at in range(len(stream)):
        client.send(stream[at : at + 1])
        client.wait_delivered()


def record_in_segments_of_one_byte(client, stream):
    sealed = client.seal(stream)
    for at in range(len(sealed)):
        client.send_raw(sealed[at : at + 1])
        client.wait_delivered()


def one_and_a_half_records_a_segment(client, stream):
    sealed = [client.seal(stream[at : at + 3]) for at in range(0, len(stream), 3)]
    whole = b"".join(sealed)
    step = len(sealed[0]) * 3 // 2
    for at in range(0, len(whole), step):
        client.send_raw(whole[at : at + step])
        client.wait_delivered()


WAYS = [
    all_at_once,
    record_for_each_byte,
    record_and_segment_for_each_byte,
    record_in_segments_of_one_byte,
    one_and_a_half_records_a_segment,
]


@both_versions
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_records_and_segments_do_not_matter(server, way, version):
    stream = acquire_frame("cut-up") + HEARTBEAT_FRAME * STREAM_HEARTBEATS
    with server.connect(version=version) as owner, server.connect(version=version) as waiter:
        way(owner, stream)
        token = owner.expect_acquired()
        for _ in range(STREAM_HEARTBEATS):
            owner.expect_acquired(token)
        way(waiter, stream)
        for _ in range(1 + STREAM_HEARTBEATS):
            waiter.expect_waiting()
        owner.expect_silence(0.02)
        way(owner, HEARTBEAT_FRAME + b"\x7f" + HEARTBEAT_FRAME)
        owner.expect_acquired(token)
        owner.expect_refused(0x13, "unknown message type: 0x7f")
        waiter.expect_acquired()


def test_random_cuts(server):
    seed = 20261129
    random_numbers = random.Random(seed)
    for round_number in range(scaled(60)):
        heartbeats = random_numbers.randrange(0, 60)
        stream = acquire_frame(f"random-{round_number}") + HEARTBEAT_FRAME * heartbeats
        with server.connect(version=random_numbers.choice([TLS_1_2, TLS_1_3])) as client:
            sealed = bytearray()
            while stream:
                size = random_numbers.choice([1, 2, 3, 8, 30, 1000])
                sealed += client.seal(stream[:size])
                stream = stream[size:]
            while sealed:
                size = random_numbers.choice([1, 5, 22, 23, 24, 100, 100, 1000])
                client.send_raw(sealed[:size])
                del sealed[:size]
                if random_numbers.random() < 0.5:
                    client.wait_delivered()
            where = f"seed {seed}, round {round_number}"
            frames = [client.next_frame() for _ in range(heartbeats + 1)]
            assert isinstance(frames[0], Acquired) and len(set(frames)) == 1, f"{where}: {frames}"
            assert client.poll() is None, where


@both_versions
def test_many_records_in_one_segment(server, version):
    """Nothing is sent afterwards that could wake the server for what it left behind."""
    with server.connect(version=version) as client:
        token = client.own("records")
        for count in (2, 3, 50, 1000):
            client.send_records(*[HEARTBEAT_FRAME] * count)
            for _ in range(count):
                client.expect_acquired(token)
        client.expect_silence(0.05)


def test_records_that_a_paused_server_finds(server):
    """More of them than the server takes at a time, from many sessions, and every heartbeat counts."""
    clients = [server.connect() for _ in range(6)]
    tokens = [client.own(f"found-{index}") for index, client in enumerate(clients)]
    server.pause()
    try:
        for client in clients:
            client.send_records(*[HEARTBEAT_FRAME * 7] * 400)
    finally:
        server.resume()
    for client, token in zip(clients, tokens):
        for _ in range(2800):
            client.expect_acquired(token)
        assert client.poll() is None
        client.close()


def test_largest_records(server):
    with server.connect() as client:
        frame = acquire_frame("large")
        client.send(frame + HEARTBEAT_FRAME * (RECORD_MAX - len(frame)))
        token = client.expect_acquired()
        for _ in range(RECORD_MAX - len(frame)):
            client.expect_acquired(token)
        client.heartbeat(3 * RECORD_MAX)
        for _ in range(3 * RECORD_MAX):
            client.expect_acquired(token)
        client.expect_silence(0.05)


@tried_again
def test_half_a_record_is_no_sign_of_life(server):
    """Bytes that no message comes of keep no lease, however many there are."""
    lease_ms = 300
    with server.connect() as owner, server.connect() as waiter:
        owner.own("half-record", lease_ms)
        asked_at, answered_at = owner.sent_at, owner.received_at
        waiter.queue("half-record")
        sealed = owner.seal(HEARTBEAT_FRAME * 10_000)
        for at in range(0, 5000, 10):
            if waiter.poll() is not None:
                break
            owner.send_raw(sealed[at : at + 10])
            time.sleep(0.01)
        else:
            raise AssertionError("never expired")
        took = waiter.received_at - asked_at
        if took <= lease_ms / 1000:
            raise NeverAllowed(f"expired after {took:.4f} s of a lease of {lease_ms} ms")
        late = waiter.received_at - answered_at - lease_ms / 1000
        assert late <= 0.02, f"{late * 1000:.1f} ms late"  # the waiter is asked every 10 ms


# --- new keys


@pytest.mark.parametrize("request_theirs", [True, False], ids=["both sides", "one side"])
def test_key_updates(server, request_theirs):
    with server.connect(version=TLS_1_3) as client:
        token = client.own("keys")
        for count in (1, 2, 31, 32, 33, 64, 65, 500):
            sealed = [client.seal(HEARTBEAT_FRAME)]
            sealed += [client.seal_key_update(request=request_theirs) for _ in range(count)]
            client.send_raw(b"".join(sealed) + client.seal(HEARTBEAT_FRAME))
            client.expect_acquired(token)
            client.expect_acquired(token)
        client.send_raw(client.seal_key_update(request=request_theirs))
        client.expect_silence(0.05)
        client.heartbeat().expect_acquired(token)


@tried_again
def test_key_updates_are_no_sign_of_life(server):
    """No message comes of them, so they keep no lease; and a storm of them delays nobody."""
    lease_ms = 600
    with server.connect(version=TLS_1_3) as client, server.connect() as waiter, server.owner("other") as other:
        client.own("only-keys", lease_ms)
        asked_at, answered_at = client.sent_at, client.received_at
        waiter.queue("only-keys")
        slowest = 0.0
        while waiter.poll() is None:
            assert time.monotonic() - answered_at < 5, "never expired"
            client.send_raw(b"".join(client.seal_key_update(request=False) for _ in range(100)))
            other.heartbeat().expect_acquired()
            slowest = max(slowest, other.received_at - other.sent_at)
        if waiter.received_at - asked_at <= lease_ms / 1000:
            raise NeverAllowed("expired early")
        assert waiter.received_at - answered_at <= lease_ms / 1000 + 0.1
        assert slowest < 0.1, f"{slowest * 1000:.0f} ms"


@tried_again
def test_key_updates_whose_answers_nobody_reads(start_server, threads, tls_files):
    """They block as frames do: bounded memory, ended by the I/O timeout, nobody else delayed."""
    server = start_server("-threads", threads, "-io-timeout", "1s", tls=tls_files, env=frees_at_once())
    with server.connect(receive_buffer=4096) as flooder, server.connect() as waiter, server.owner("other") as other:
        flooder.own("flooded")
        waiter.queue("flooded")
        memory = procfs.resident_bytes(server.pid)
        started_at = time.monotonic()
        latencies = []
        unsent = b""
        while waiter.poll() is None:
            assert time.monotonic() - started_at < 20, "never ended"
            for _ in range(0 if unsent else 200):
                unsent += flooder.seal_key_update() + flooder.seal(HEARTBEAT_FRAME * 20)
            try:
                unsent = unsent[flooder.sock.send(unsent, socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                pass
            except (ConnectionResetError, BrokenPipeError):
                unsent = b""
            other.heartbeat().expect_acquired()
            latencies.append(other.received_at - other.sent_at)
        assert time.monotonic() - started_at >= 1
        assert statistics.quantiles(latencies, n=100)[98] < 0.1
        assert procfs.resident_bytes(server.pid) - memory < 16 << 20
