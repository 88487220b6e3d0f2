"""Fixtures of the black-box tests: servers that are always ended, and both numbers of threads."""

import contextlib
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import explained  # noqa: E402
from support.pki import Authority  # noqa: E402
from support.server import Server  # noqa: E402
from support.tls_files import TlsFiles  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "deadline: judges milliseconds, so it has the machine to itself")


def pytest_collection_modifyitems(items):
    """Skips what MONOLOCK_TEST_SKIPS lists: tests that say nothing where the server runs in an unusual way."""
    if not os.environ.get("MONOLOCK_TEST_SKIPS"):
        return
    skips = explained.read(pathlib.Path(os.environ["MONOLOCK_TEST_SKIPS"]), ("test", "why"))
    for item in items:
        name = item.originalname or item.name
        for each in skips:
            if each.file == f"tests/blackbox/{item.path.name}" and each["test"] in (name, "all"):
                item.add_marker(pytest.mark.skip(reason=each["why"]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for server in getattr(item, "servers", []):
            with contextlib.suppress(ValueError):  # its files are closed already
                report.sections.append((f"log of server {server.pid}", server.stderr()[-4000:]))


@pytest.fixture
def start_server(request):
    """Starts servers; each of them must end in good order after the test unless the test ended it."""
    servers = request.node.servers = []

    def start(*flags, **options):
        server = Server(*flags, **options)
        servers.append(server)
        return server

    yield start
    try:
        for server in servers:
            if server.exit_code() is None:
                server.stop()
    finally:
        for server in servers:
            server.dispose()


THREADS = (os.environ.get("MONOLOCK_TEST_THREADS") or "1 2").split()


@pytest.fixture(params=THREADS, ids=[f"threads{each}" for each in THREADS])
def threads(request):
    return request.param


@pytest.fixture
def server(start_server, threads):
    """A server with defaults, once with one shard and once with two."""
    return start_server("-threads", threads)


@pytest.fixture
def one_server(start_server):
    """A server with defaults, for tests that shards cannot change."""
    return start_server("-threads", "2")


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """Signs the certificates of servers and clients."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def tls_files(tmp_path, authority):
    """For start_server(tls=…): a server whose clients show no certificate."""
    return TlsFiles(tmp_path, authority)


@pytest.fixture
def mtls_files(tmp_path, authority):
    """… whose clients need one."""
    return TlsFiles(tmp_path, authority, mutual=True)
