"""A crowd of sessions that has left leaves no memory behind: what they occupied goes back to the system."""

import pathlib
import resource
import socket
import time

import pytest

from support import procfs
from support.protocol import acquire_frame
from support.server import binary
from support.waiting import wait_until

SESSIONS = 3000
MEBIBYTE = 1 << 20
LOOKS_EVERY = 2.5  # seconds, with some to spare


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < SESSIONS + 200:
        pytest.skip(f"no more than {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, SESSIONS + 200), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def owner(server, name):
    """A bare socket: there are more of them than select takes."""
    connection = socket.create_connection(server.address)
    connection.sendall(acquire_frame(name))
    assert connection.recv(1) == b"\x12"
    return connection


def test_memory_of_a_crowd_goes_back(start_server, threads, many_descriptors):
    if b"__sanitizer" in pathlib.Path(binary()).read_bytes():
        pytest.skip("a sanitizer has an allocator of its own")
    server = start_server("-threads", threads)
    before = procfs.resident_bytes(server.pid)
    crowd = [owner(server, f"{index}-" + "x" * 200) for index in range(SESSIONS)]
    peak = procfs.resident_bytes(server.pid)
    assert peak - before > 1.5 * MEBIBYTE
    time.sleep(LOOKS_EVERY)  # a crowd is one that was seen
    for each in crowd:
        each.close()
    wait_until(
        lambda: peak - procfs.resident_bytes(server.pid) > MEBIBYTE, "memory goes back", within=10
    )
