"""A crowd of sessions that has left leaves no memory behind: what they occupied goes back to the system."""

import pathlib
import resource

import pytest

from support import procfs
from support.server import binary
from support.waiting import wait_until

SESSIONS = 3000
MEBIBYTE = 1 << 20


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < SESSIONS + 200:
        pytest.skip(f"no more than {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, SESSIONS + 200), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_memory_of_a_crowd_goes_back(start_server, threads, many_descriptors):
    if b"__sanitizer" in pathlib.Path(binary()).read_bytes():
        pytest.skip("a sanitizer has an allocator of its own")
    server = start_server("-threads", threads)
    before = procfs.resident_bytes(server.pid)
    crowd = [server.owner(f"{index}-" + "x" * 200) for index in range(SESSIONS)]
    peak = procfs.resident_bytes(server.pid)
    assert peak - before > 1.5 * MEBIBYTE
    for each in crowd:
        each.close()
    wait_until(
        lambda: peak - procfs.resident_bytes(server.pid) > MEBIBYTE, "memory goes back", within=10
    )
