"""PostgreSQL as Debian installs it, as a server of one's own: what bench/run compares with, and what tests/fenced
writes to. Whoever starts it decides where it listens, and ends it with SIGINT."""

import contextlib
import dataclasses
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

from .errors import CannotMeasure
from .servers import end

START_SECONDS = 30
END_SIGNAL = signal.SIGINT  # fast: sessions are ended


def binary(name):
    """The path of one of its programs, of the newest version, or None."""
    of_debian = sorted(
        pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"),
        key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0,
    )
    return str(of_debian[-1]) if of_debian else shutil.which(name)


def user():
    """Whom it runs as, since it refuses to run as root: None for whoever asks."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def make_data(folder, superuser):
    """A fresh database, `postgres`, in a folder below one that its user may enter."""
    folder.mkdir(mode=0o700)
    if user():
        folder.parent.chmod(0o711)
        shutil.chown(folder, user())
    command = [binary("initdb"), "-D", str(folder), "-U", superuser, "--auth=trust", "--no-sync"]
    done = subprocess.run(command, capture_output=True, text=True, user=user(), cwd=folder)
    if done.returncode != 0:
        raise CannotMeasure(f"initdb: {done.stderr.strip()}")


def command(folder, **settings):
    words = (word for key, value in settings.items() for word in ("-c", f"{key}={value}"))
    return [binary("postgres"), "-D", str(folder), *words]


@dataclasses.dataclass(frozen=True)
class Cluster:
    """One that listens on a Unix socket, so that it is reached from every network namespace."""

    conninfo: str
    psql: tuple[str, ...]  # the beginning of a command

    def ask(self, sql, **variables):
        """The rows of what psql prints, without heads; fails as psql does."""
        words = [word for key, value in variables.items() for word in ("-v", f"{key}={value}")]
        done = subprocess.run(
            [*self.psql, "-XAtq", "-v", "ON_ERROR_STOP=1", *words], input=sql, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise CannotMeasure(f"psql: {done.stderr.strip()}")
        return done.stdout


@contextlib.contextmanager
def started(superuser, **settings):
    """A fresh Cluster, which is gone afterwards."""
    # Directly below the folder for such things, which everybody may enter.
    with tempfile.TemporaryDirectory(prefix="monolock-postgres-") as folder:
        with serving(pathlib.Path(folder), superuser, settings) as cluster:
            yield cluster


@contextlib.contextmanager
def serving(folder, superuser, settings):
    data, sockets = folder / "data", folder / "sockets"
    make_data(data, superuser)
    sockets.mkdir()
    if user():
        shutil.chown(sockets, user())
    settings = {"listen_addresses": "", "unix_socket_directories": str(sockets), **settings}
    conninfo = f"host={sockets} user={superuser} dbname=postgres"
    cluster = Cluster(conninfo, (binary("psql"), conninfo))
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command(data, **settings), stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=data, user=user()
        )
        try:
            wait_until_it_answers(cluster, process, log)
            yield cluster
        finally:
            end(process, END_SIGNAL)


def wait_until_it_answers(cluster, process, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(CannotMeasure):
            cluster.ask("SELECT 1")
            return
        time.sleep(0.02)
    lines = os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace").splitlines()
    raise CannotMeasure(f"PostgreSQL did not start: {' / '.join(lines[-3:])}")
