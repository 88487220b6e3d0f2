"""The audit log and its file: rotation, a full disk, a pipe that nobody reads. Locks never notice."""

import fcntl
import json
import os
import resource
import signal
import stat
import threading
import time

import pytest

from ctl import ctl
from support import audit
from support.http import fetch
from support.small_disk import SmallDisk
from support.waiting import scaled, wait_until


def errors(server):
    return [record for record in server.records() if record["level"] == "error"]


def count_messages(server, text):
    return sum(text in record["msg"] for record in server.records())


def pairs(server, count, name="lock", each_within=5.0):
    """So many grants and their ends, one after the other; the tokens. Each grant must come in time."""
    tokens = []
    for _ in range(count):
        connection = server.connect()
        connection.acquire(name)
        tokens.append(connection.wait_acquired(each_within))
        connection.close()
    return tokens


def wait_whole(path, lines, within=10.0):
    """The text of a file once it has so many lines."""
    wait_until(lambda: path.read_bytes().count(b"\n") >= lines, f"{lines} lines in {path.name}", within)
    return path.read_text(encoding="utf-8")


# --- rotation


def test_rotation_at_full_speed_keeps_each_event_in_one_file(start_server, threads, tmp_path):
    """Case H8."""
    path = tmp_path / "audit.log"
    server = start_server("-threads", threads, "-audit-log", str(path), before_exec=lambda: os.umask(0o022))
    tokens, done = [[], []], threading.Event()

    def load(into, name):
        while not done.is_set():
            into.extend(pairs(server, 20, name))

    loads = [threading.Thread(target=load, args=(into, f"lock-{number}")) for number, into in enumerate(tokens)]
    begin = time.monotonic()
    for thread in loads:
        thread.start()
    rotated = []
    for number in range(scaled(10, at_least=4)):
        time.sleep(0.1)
        rotated.append(tmp_path / f"audit.log.{number}")
        path.rename(rotated[-1])
        server.signal(signal.SIGHUP)
        wait_until(path.exists, "the file is made anew")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    done.set()
    for thread in loads:
        thread.join()
    seconds = time.monotonic() - begin
    server.stop()
    seen = audit.check(audit.read(*rotated, path))
    assert seen.grants.keys() == seen.ends.keys() == {token for each in tokens for token in each}
    assert all(file.stat().st_size > 0 for file in rotated)
    assert server.reloads("audit") == len(rotated)
    print(f"{2 * len(seen.grants) / seconds:.0f} events a second over {len(rotated)} rotations")


def test_a_reopen_that_fails_keeps_the_old_file(start_server, tmp_path):
    path, old = tmp_path / "audit.log", tmp_path / "audit.log.1"
    server = start_server("-audit-log", str(path))
    pairs(server, 1)
    path.rename(old)
    path.mkdir()
    for failures in (1, 2):
        server.signal(signal.SIGHUP)
        wait_until(lambda failures=failures: len(errors(server)) == failures, "an error line for the failure")
        assert errors(server)[-1]["reload_failures"] == str(failures)
        assert str(path) in errors(server)[-1]["reason"]
    pairs(server, 1)
    wait_whole(old, 4)
    path.rmdir()
    server.signal(signal.SIGHUP)
    wait_until(path.exists, "the file is made anew")
    pairs(server, 1)
    server.stop()
    audit.check(audit.read(old, path))
    assert (len(audit.read(old)), len(audit.read(path))) == (4, 2)


def test_many_signals_at_once(start_server, tmp_path):
    path = tmp_path / "audit.log"
    server = start_server("-audit-log", str(path))
    before = server.settled_descriptors()
    for _ in range(100):
        server.signal(signal.SIGHUP)
        pairs(server, 1)
    server.wait_descriptors(before)
    server.stop()
    assert len(audit.check(audit.read(path)).ends) == 100


# --- a disk that refuses


@pytest.fixture
def small_disk(tmp_path, start_server):
    def make(*flags, size_kib=64):
        try:
            disk = SmallDisk(tmp_path / "disk", size_kib)
        except OSError as failure:
            pytest.skip(f"a file system cannot be mounted here: {failure}")
        server = start_server("-audit-log", str(disk.path("audit.log")), *flags, prefix=disk.prefix)
        disk.entered_by(server.pid)
        return disk, server

    return make


def test_on_a_full_disk_locks_go_on_and_events_wait(small_disk):
    """Case H9, up to the bound: nothing is lost."""
    disk, server = small_disk("-threads", "1")
    path = disk.seen("audit.log")
    tokens = pairs(server, 400, each_within=1.0)
    wait_until(lambda: errors(server), "an error line")
    assert "No space left" in errors(server)[0]["reason"]
    text = path.read_text(encoding="utf-8")
    assert 0 < len(audit.parse_text(text)) < 800, "whole lines only, also now"
    server.signal(signal.SIGHUP)  # a reopen does not help, and harms nothing
    tokens += pairs(server, 50)
    assert path.read_text(encoding="utf-8") == text
    assert len(errors(server)) == 1, "one error a minute"
    disk.resize(1024)
    records = audit.parse_text(wait_whole(path, 900))
    seen = audit.check(records)
    assert sorted(seen.ends) == tokens and seen.lost == 0
    assert count_messages(server, "audit log is written again") == 1


def overflow(server):
    """More events than wait in memory, each as large as it can be without certificates; the tokens."""
    tokens = []
    for each in range(0, 14_000, 100):
        owners = [server.connect().acquire(f"{number:0255}") for number in range(each, each + 100)]
        tokens += [owner.expect_acquired(within=1.0) for owner in owners]
        for owner in owners:
            owner.close()
    return tokens


def test_past_the_bound_the_loss_is_counted_and_stands_in_the_stream(small_disk):
    """Case H9, past it."""
    disk, server = small_disk("-threads", "1")
    tokens = overflow(server)
    assert len(errors(server)) == 1, "one error a minute"
    disk.resize(64 * 1024)
    wait_until(lambda: count_messages(server, "audit log is written again"), "the disk takes it all")
    assert int(server.records()[-1]["lost"]) > 0
    tokens += pairs(server, 20)
    with open(disk.seen("audit.log"), encoding="utf-8") as file:  # the disk is gone with its server
        server.stop()
        text = file.read()
    records = audit.parse_text(text)
    gaps = [index for index, record in enumerate(records) if record["event"] == "audit_gap"]
    kept = [(record["event"], record["token"]) for record in records if record["event"] != "audit_gap"]
    lost = sum(records[index]["lost"] for index in gaps)
    assert lost > 0 and len(kept) + lost == 2 * len(tokens), "every event is there or counted"
    assert len(set(kept)) == len(kept) and {token for _, token in kept} <= set(tokens)
    assert kept[-1] == ("released", tokens[-1])
    audit.check(records[: gaps[0]])
    if "MONOLOCKCTL_BIN" in os.environ:
        proof = ctl("audit", "verify", "-", input=text, stdin=None)
        assert proof.returncode == 0, proof.stdout
        assert f"not proven: what {lost} lost records said, at standard input:{gaps[0] + 1}" in proof.stdout


def fill(path):
    """Takes what room is left on a disk, in a file of its own."""
    with open(path, "wb", buffering=0) as file:
        with pytest.raises(OSError):
            while True:
                file.write(bytes(4096))


def test_an_outage_soon_after_another_is_told_as_well(small_disk):
    disk, server = small_disk("-threads", "1", "-admin-listen", "127.0.0.1:0", size_kib=32 * 1024)

    def is_refused():
        return json.loads(fetch(server.admin_address, "/api/info").body)["audit_log_refused"]

    for outage in (1, 2, 3):
        fill(disk.seen("fill"))
        pairs(server, 40)
        wait_until(is_refused, f"outage {outage} is known")
        if outage == 3:
            overflow(server)
        disk.seen("fill").unlink()
        wait_until(lambda: not is_refused(), f"outage {outage} is over")
        again = "audit log is written again"
        wait_until(lambda: count_messages(server, again) == outage, f"the end of outage {outage} is told")
    (*_, told) = [record["lost"] for record in server.records() if again in record["msg"]]
    lost = json.loads(fetch(server.admin_address, "/api/info").body)["totals"]["audit_lost_events"]
    assert int(told) == lost > 0
    assert len(errors(server)) == 1, "one error a minute"


def test_a_device_that_is_always_full_keeps_nobody(start_server):
    server = start_server("-io-timeout", "300ms", "-audit-log", "/dev/full")
    pairs(server, 100, each_within=1.0)
    wait_until(lambda: errors(server), "an error line")
    server.stop(within=5.0)
    assert "No space left" in errors(server)[0]["reason"]
    assert errors(server)[-1]["events"] == "200", "what could not be written is said at the end"


def test_a_limit_of_file_sizes_is_a_disk_that_refuses(start_server, tmp_path):
    """ulimit -f, LimitFSIZE=: the signal that comes with it ends nobody."""
    path = tmp_path / "audit.log"
    limit = (4096, resource.RLIM_INFINITY)
    server = start_server(
        "-audit-log", str(path), before_exec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    tokens = pairs(server, 50, each_within=1.0)
    wait_until(lambda: errors(server), "an error line")
    assert "File too large" in errors(server)[0]["reason"]
    tokens += pairs(server, 5)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seen = audit.check(audit.parse_text(wait_whole(path, 2 * len(tokens))))
    assert sorted(seen.ends) == tokens and seen.lost == 0


# --- pipes


def test_a_pipe_without_a_reader_delays_neither_start_nor_locks(start_server, tmp_path):
    """Case H9: a reader that comes late gets everything, in order, in whole lines."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    server = start_server("-threads", "1", "-audit-log", str(path))
    tokens = pairs(server, 500, each_within=1.0)  # three times what the pipe holds
    wait_until(lambda: errors(server), "an error line")
    assert "reader takes nothing" in errors(server)[0]["reason"]
    tokens += pairs(server, 50)
    got = bytearray()
    with open(path, "rb", buffering=0) as reader:
        os.set_blocking(reader.fileno(), False)

        def read_some():
            data = reader.read(3000)  # not a multiple of anything
            got.extend(data or b"")
            return got.count(b"\n") >= 2 * len(tokens)

        wait_until(read_some, "everything through the pipe", interval=0)
        server.stop()
    seen = audit.check(audit.parse_text(got.decode()))
    assert sorted(seen.ends) == tokens


def test_a_stalled_standard_output_holds_whole_lines(start_server, tmp_path):
    """The server ends though nobody reads; what the pipe holds is not cut within a line."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    server = start_server(
        "-threads", "1", "-io-timeout", "300ms", "-audit-log", "-", before_exec=lambda: os.dup2(write_end, 1)
    )
    os.close(write_end)
    pairs(server, 50, each_within=1.0)
    server.stop(within=5.0)
    with open(read_end, "rb") as reader:
        records = audit.parse_text(reader.read().decode())
    assert 0 < len(records) < 100
    assert int(errors(server)[-1]["events"]) == 100 - len(records)
