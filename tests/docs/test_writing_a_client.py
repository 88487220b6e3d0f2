"""The client of docs/writing-a-client.md does what the page says: all of the test vectors, its rules as dialogues, and
a real server."""

import contextlib
import json
import socket
import threading
import types

import book
import pytest
from support.server import Server
from support.waiting import wait_until

PAGE = "docs/writing-a-client.md"
(SOURCE,) = [block for block in book.blocks_of(PAGE) if block.language == "python" and "class Claim" in block.text]
client = types.ModuleType("client")
exec(compile(f"{chr(10) * (SOURCE.line - 1)}{SOURCE.text}", PAGE, "exec"), client.__dict__)
LEASE = 10_000_000_000  # of the dialogues, in nanoseconds


def vectors(file, name):
    return json.loads((book.ROOT / "tests/vectors" / file).read_text())[name]


# --- the vectors


def as_told(kind, content):
    if kind == client.WAITING:
        return {"type": "waiting"}
    if kind == client.ACQUIRED:
        return {"type": "acquired", "token": str(content)}
    return {"type": "error", "code": f"0x{content[0]:02x}", "reason": content[1]}


def decoded(pieces):
    """What the pieces of a stream mean, and what their end is."""
    frames, rest = [], b""
    for piece in pieces:
        rest += piece
        try:
            while (frame := client.take(rest)) is not None:
                frames.append(as_told(*frame[:2]))
                rest = rest[frame[2] :]
        except client.Violation as violation:
            return frames, str(violation)
    return frames, "incomplete" if rest else "end"


@pytest.mark.parametrize("vector", [pytest.param(each, id=each["about"]) for each in vectors("server_frames.json", "streams")])
def test_streams_however_they_are_cut(vector):
    data = bytes.fromhex(vector["bytes_hex"])
    wanted = (vector["frames"], vector["then"])
    ways = [[data], [data[at : at + 1] for at in range(len(data))]]
    ways += [[data[:at], data[at:]] for at in range(1, len(data))]
    for pieces in ways:
        assert decoded(pieces) == wanted, pieces


def test_names():
    for vector in vectors("names.json", "names"):
        raw = bytes.fromhex(vector["name_hex"])
        try:
            frame = client.acquire_frame(raw.decode("utf-8"), 10_000)
        except ValueError:  # of which a UnicodeError is one
            assert not vector["valid"], vector["about"]
        else:
            assert vector["valid"] and frame.endswith(raw), vector["about"]


def test_names_that_look_alike():
    for vector in vectors("names.json", "distinct"):
        names = [bytes.fromhex(each).decode("utf-8") for each in vector["names_hex"]]
        assert len({client.acquire_frame(name, 10_000) for name in names}) == len(names), vector["about"]


def test_first_messages():
    for vector in vectors("first_message.json", "messages"):
        if vector["result"] == "accepted":
            name = bytes.fromhex(vector["name_hex"]).decode("utf-8")
            whole = bytes.fromhex(vector["bytes_hex"])[: vector["settled_at"]]
            assert client.acquire_frame(name, vector["lease_ms"]) == whole, vector["about"]


def test_leases_that_are_none():
    for lease_ms in (0, -1, 2**32):
        with pytest.raises(ValueError):
            client.acquire_frame("name", lease_ms)


def test_the_schedule():
    for vector in vectors("heartbeats.json", "schedule"):
        claim = client.Claim(vector["lease_ms"], 0)
        assert claim.timeout == vector["timeout_ns"], vector["about"]
        assert client.interval(claim.lease, vector["smoothed_rtt_ns"]) == vector["interval_ns"], vector["about"]


def test_the_smoothed_round_trip():
    for vector in vectors("heartbeats.json", "round_trips"):
        value, heard = None, []
        for sample in vector["samples_ns"]:
            value = client.smoothed(value, sample)
            heard.append(value)
        assert heard == vector["smoothed_ns"], vector["about"]


def test_the_classes_of_the_codes():
    for vector in vectors("error_codes.json", "codes"):
        assert client.Refused(int(vector["code"], 16), "").temporary == (vector["class"] == "server condition")


# --- the rules, as dialogues

W, A7, A8 = b"\x11", b"\x12" + bytes(7) + b"\x07", b"\x12" + bytes(7) + b"\x08"


def claim_at(sent, *heard):
    claim = client.Claim(10_000, sent)
    for data, at in heard:
        claim.receive(data, at)
    return claim


def test_the_push_answers_nothing():
    claim = claim_at(0, (W, 1000))
    claim.beat(2_000_000_000)
    claim.receive(A7, 2_000_001_000)
    assert (claim.state, claim.token) == ("held", 7)
    assert claim.confirmed_until == LEASE * 4 // 5 and claim.in_flight  # still from the ACQUIRE
    claim.receive(A7, 2_000_002_000)
    assert claim.confirmed_until == 2_000_000_000 + LEASE * 4 // 5 and not claim.in_flight


def test_a_beat_while_waiting_is_answered():
    claim = claim_at(0, (W, 0))
    assert claim.beats_at() == LEASE // 4
    claim.beat(LEASE // 4)
    assert claim.beats_at() is None
    claim.receive(W, LEASE // 4 + 1)
    assert claim.confirmed_until == LEASE // 4 + LEASE * 4 // 5


@pytest.mark.parametrize("after, then", [
    ((W, A7), W), ((A7,), A8), ((), A7[:1] + bytes(8)), ((A7,), A7), ((W,), W), ((), b"\x14"), ((W,), b"\x01"),
])  # fmt: skip
def test_what_no_server_sends(after, then):
    claim = claim_at(0, *((data, 1) for data in after))
    with pytest.raises(client.Violation):
        claim.receive(then, 2)


# --- a real server


@pytest.fixture
def server():
    made = Server("-threads", "1", "-ops-listen", "127.0.0.1:0")
    yield made
    if made.exit_code() is None:
        made.stop()
    made.dispose()


def value(server, metric):
    ((_, number),) = server.metrics()[metric].samples.items()
    return number


class Worker:
    """with_lock on a thread of its own."""

    def __init__(self, address, work, lease_ms=10_000):
        self.result = self.failure = None
        self._thread = threading.Thread(target=self._run, args=(address, work, lease_ms))
        self._thread.start()

    def _run(self, address, work, lease_ms):
        try:
            self.result = client.with_lock(address, "nightly", lease_ms, work)
        except Exception as failure:
            self.failure = failure

    def ended(self, within=20.0):
        self._thread.join(within)
        assert not self._thread.is_alive(), f"not within {within} s"
        return self


def test_one_after_the_other_in_order(server):
    first = client.acquire(server.address, "nightly", 10_000)
    order, workers = [], []
    for number in range(3):
        workers.append(Worker(server.address, lambda lock, number=number: order.append(number) or lock.token))
        wait_until(lambda: value(server, "monolock_waiters") == len(workers), "it is in line")
    assert first.mine() and order == []
    first.close()
    tokens = [first.token, *(worker.ended().result for worker in workers)]
    assert order == [0, 1, 2] and tokens == sorted(set(tokens)) and not any(worker.failure for worker in workers)


def test_beats_keep_it_longer_than_the_lease(server):
    lock = client.acquire(server.address, "nightly", 200)
    wait_until(lambda: value(server, "monolock_heartbeats_total") >= 10, "it beats")
    assert lock.mine()
    lock.close()
    wait_until(lambda: value(server, "monolock_locks_held") == 0, "it is released")


def test_a_silent_server_is_noticed_before_its_lease_is_over(server):
    lease_ms = 1000
    lock = client.acquire(server.address, "nightly", lease_ms)
    server.pause()
    last_word = client.now()  # from here on nothing is answered
    assert lock.lost.wait(10) and isinstance(lock.why, client.Lost) and not lock.mine()
    assert lock._claim.confirmed_until < last_word + lease_ms * 1_000_000
    server.resume()
    lock.close()


def test_a_client_that_stood_still_knows_at_its_first_look(server):
    """Its thread may be late: the clock is what counts."""
    lock = client.acquire(server.address, "nightly", 300)
    lock._claim.confirmed_until = client.now() - 1
    assert not lock.lost.is_set() and not lock.mine()
    lock.close()


def test_a_loss_while_the_work_ran_is_raised(server):
    def work(lock):
        server.kill()
        lock.lost.wait(10)
        return "done"

    worker = Worker(server.address, work).ended()
    assert isinstance(worker.failure, client.Lost) and worker.result is None


def test_it_lines_up_again_at_a_server_that_comes_back(server):
    """Two waiters of a server that shuts down get the next server's lock, both, one after the other."""
    holder = client.acquire(server.address, "nightly", 10_000)
    workers = [Worker(server.address, lambda lock: lock.mine()) for _ in range(2)]
    wait_until(lambda: value(server, "monolock_waiters") == 2, "they are in line")
    server.stop()
    assert holder.lost.wait(10) and isinstance(holder.why, client.Refused) and holder.why.code == 0x01
    holder.close()
    again = Server(listen=f"127.0.0.1:{server.port}")
    try:
        assert [worker.ended().result for worker in workers] == [True, True]
        again.stop()
    finally:
        again.dispose()


def test_a_refusal_from_0x10_up_is_the_end():
    with scripted(b"\x13\x18\x02no") as address, pytest.raises(client.Refused) as refused:
        client.acquire(address, "nightly", 10_000)
    assert (refused.value.code, refused.value.reason) == (0x18, "no")


def test_who_is_no_server_is_left():
    with scripted(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address, pytest.raises(client.Violation):
        client.acquire(address, "nightly", 10_000)


@contextlib.contextmanager
def scripted(answer):
    """Somebody who says that to the first who comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(answer)
                connection.recv(4096)
                connection.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()
        thread.join(10)
