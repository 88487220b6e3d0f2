"""Debian's etcd as child processes, and what an operator asks of it over its JSON gateway."""

import base64
import contextlib
import json
import pathlib
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from . import procfs
from .waiting import wait_until

CLIENT_PORT = 2379
PEER_PORT = 2380
START_WITHIN = 20.0
CALL_WITHIN = 2.0


class Unavailable(Exception):
    """etcd did not answer, or with an error."""


def as_base64(text):
    return base64.b64encode(text.encode()).decode()


class Member:
    """One process. `place` has an address, the prefix of commands that run there, and entered()."""

    def __init__(self, place, name, folder, timing):
        self.place = place
        self.name = name
        self._data = pathlib.Path(folder, name)
        self._log = open(pathlib.Path(folder, f"{name}.log"), "wb")  # noqa: SIM115 - closed by dispose()
        self._timing = timing
        self._process = None

    @property
    def url(self):
        return f"http://{self.place.address}:{CLIENT_PORT}"

    @property
    def peer_url(self):
        return f"http://{self.place.address}:{PEER_PORT}"

    @property
    def pid(self):
        return self._process.pid

    def start(self, cluster):
        """With its data, if it has any. Does not wait."""
        heartbeat_ms, election_ms = self._timing
        self._process = subprocess.Popen(
            [
                *self.place.prefix, "etcd", "--name", self.name, "--data-dir", str(self._data),
                "--listen-client-urls", f"{self.url},http://127.0.0.1:{CLIENT_PORT}",
                "--advertise-client-urls", self.url,
                "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", cluster, "--initial-cluster-token", "monolock-tests",
                "--heartbeat-interval", str(heartbeat_ms), "--election-timeout", str(election_ms),
                "--unsafe-no-fsync", "--logger", "zap", "--log-level", "warn",
            ],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )  # fmt: skip

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def kill(self):
        if self.is_running():
            self._process.kill()
            self._process.wait()

    def pause(self):
        """Its connections stay, and nothing answers."""
        self._process.send_signal(signal.SIGSTOP)
        wait_until(lambda: procfs.state(self.pid) == "T", "etcd stands still", interval=0.0005)

    def resume(self):
        self._process.send_signal(signal.SIGCONT)

    def call(self, path, within=CALL_WITHIN, **body):
        """What the gateway answers. Raises Unavailable."""
        request = urllib.request.Request(
            f"{self.url}/v3/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with self.place.entered(), direct.open(request, timeout=within) as answer:
                return json.load(answer)
        except (OSError, ValueError) as why:
            raise Unavailable(f"{self.name}: {path}: {why}") from None

    def dispose(self):
        self.kill()
        self._log.close()


class Etcd:
    """A member at each of the places. The timing is that of Raft: heartbeat and election, in milliseconds; the
    shortest lease is one and a half times the second."""

    def __init__(self, places, timing=(10, 100)):
        self._folder = tempfile.TemporaryDirectory(prefix="etcd-")
        self.members = [
            Member(place, f"m{number}", self._folder.name, timing) for number, place in enumerate(places, 1)
        ]

    @property
    def endpoints(self):
        """As -etcd-endpoints takes them."""
        return ",".join(member.url for member in self.members)

    @property
    def _cluster(self):
        return ",".join(f"{member.name}={member.peer_url}" for member in self.members)

    def start(self, *members):
        """All of them, or those given; returns when the cluster answers."""
        for member in members or self.members:
            member.start(self._cluster)
        self.wait_ready()
        return self

    def wait_ready(self, within=START_WITHIN):
        """Until each member that runs answers a read of the whole cluster."""

        def ready():
            try:
                return all(member.call("kv/range", key=as_base64("?")) for member in self.members if member.is_running())
            except Unavailable:
                return False

        wait_until(ready, "etcd answers", within, interval=0.02)

    def call(self, path, **body):
        """The first member that answers."""
        failures = []
        for member in self.members:
            if member.is_running():
                try:
                    return member.call(path, **body)
                except Unavailable as why:
                    failures.append(str(why))
        raise Unavailable("; ".join(failures) or "no member runs")

    def get(self, key):
        """The entry as the gateway has it, or None."""
        found = self.call("kv/range", key=as_base64(key)).get("kvs", [])
        return found[0] if found else None

    def put(self, key, value):
        """Under no lease."""
        self.call("kv/put", key=as_base64(key), value=as_base64(value))

    def revision(self):
        """How much has been written so far."""
        return int(self.call("kv/range", key=as_base64("/"))["header"]["revision"])

    def delete(self, key):
        """How many there were: 0 or 1."""
        return int(self.call("kv/deleterange", key=as_base64(key)).get("deleted", 0))

    def revoke(self, lease):
        self.call("lease/revoke", ID=lease)

    def leader(self):
        """The member that leads, or None if nobody says so."""
        for member in self.members:
            with contextlib.suppress(Unavailable):
                status = member.call("maintenance/status", within=0.5)
                if status.get("leader") and status["leader"] == status["header"]["member_id"]:
                    return member
        return None

    def raft_term(self):
        """The latest that a member knows of; it rises with each election."""
        terms = [0]
        for member in self.members:
            if member.is_running():
                with contextlib.suppress(Unavailable):
                    terms.append(int(member.call("maintenance/status", within=0.5)["raftTerm"]))
        return max(terms)

    def dispose(self):
        for member in self.members:
            member.dispose()
        self._folder.cleanup()
