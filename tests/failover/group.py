"""Several servers that etcd coordinates, on machines of their own."""

import base64
import contextlib
import itertools
import json
import pathlib
import tempfile

from failover.network import Network
from support import http
from support.connection import Connection
from support.etcd import Etcd
from support.server import Server
from support.waiting import wait_until

PORT = 7070


class Peer:
    """One of the servers: its machine, and the process that runs there now."""

    def __init__(self, group, number, machine):
        self.name = f"s{number}"
        self.machine = machine
        self._group = group
        self.server = None

    @property
    def address(self):
        """As a client takes it."""
        return f"{self.machine.address}:{PORT}"

    def start(self, *flags, host="0.0.0.0", env=None):
        """Does not wait: a standby says nothing of addresses."""
        assert self.server is None or self.server.exit_code() is not None
        if self.server:
            self.server.dispose()
        socket = self._group.folder / self.name
        self.server = Server(
            "-ops-listen", f"unix:{socket}.ops", "-admin-listen", f"unix:{socket}.admin",
            "-advertise", self.name, *self._group.flags, *flags,
            listen=f"{host}:{PORT}", prefix=self.machine.prefix, env=env, wait=False,
        )  # fmt: skip
        return self

    def is_running(self):
        return self.server is not None and self.server.exit_code() is None

    def wait_up(self):
        """Until its other ports answer."""
        wait_until(lambda: self.health("/healthz") is not None, f"{self.name} answers probes")
        return self

    def health(self, path):
        """The answer to a probe, or None if there is none."""
        with contextlib.suppress(OSError, AssertionError):
            return http.fetch(str(self._group.folder / f"{self.name}.ops"), path, within=2.0)
        return None

    def is_ready(self):
        answer = self.health("/readyz")
        return answer is not None and answer.status == 200

    def info(self):
        """What the admin API says of the role."""
        answer = http.fetch(str(self._group.folder / f"{self.name}.admin"), "/api/info", within=2.0)
        assert answer.status == 200, answer
        return json.loads(answer.text)["failover"]

    def role(self):
        """The same, or None if nobody answers."""
        with contextlib.suppress(OSError, AssertionError):
            return self.info()
        return None

    def metric(self, name):
        return self.server.metrics()[name].value()

    def connect(self):
        """From the clients' machine."""
        with self._group.clients.entered():
            return Connection((self.machine.address, PORT))

    def refuses(self):
        with self._group.clients.entered():
            return http.refuses((self.machine.address, PORT))

    def wait_record(self, message, within=10.0, count=1):
        """The record of that message that is the count-th."""

        def said():
            found = [record for record in self.server.records() if record["msg"] == message]
            return found[count - 1] if len(found) >= count else None

        return wait_until(said, f"{self.name} says: {message}", within)


class Group:
    """Set up by `with`: a network with etcd's members, the servers, and a machine for clients. The servers are not
    started. `flags` are for all of them."""

    def __init__(self, *flags, servers=2, members=1, ttl="1s", network=None, etcd=None, timing=(10, 100)):
        self._wishes = (servers, members, timing)
        self._given = (network, etcd)
        self._flags = flags
        self.ttl = ttl
        self._undo = contextlib.ExitStack()

    _prefixes = itertools.count(1)

    def __enter__(self):
        servers, members, timing = self._wishes
        with contextlib.ExitStack() as undo:
            self.folder = pathlib.Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="failover-")))
            network, self.etcd = self._given
            if network is None:
                network = Network()
                undo.callback(network.remove)
            if self.etcd is None:
                self.etcd = Etcd([network.machine() for _ in range(members)], timing)
                undo.callback(self.etcd.dispose)
            self.prefix = f"/group-{next(self._prefixes)}/"
            self.clients = network.machine()
            self.peers = [Peer(self, number, network.machine()) for number in range(1, servers + 1)]
            undo.callback(self._end_servers)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _end_servers(self):
        for peer in self.peers:
            if peer.server:
                peer.server.dispose()

    @property
    def flags(self):
        return (
            "-etcd-endpoints", self.etcd.endpoints, "-etcd-prefix", self.prefix, "-etcd-ttl", self.ttl,
            "-threads", "2", *self._flags,
        )  # fmt: skip

    @property
    def addresses(self):
        """The list that a client takes."""
        return ",".join(peer.address for peer in self.peers)

    @property
    def etcd_machines(self):
        return [member.place for member in self.etcd.members]

    def add_beside(self, peer):
        """One more server, on the machine of another."""
        self.peers.append(Peer(self, len(self.peers) + 1, peer.machine))
        return self.peers[-1]

    def start(self):
        """All servers, the first of them active."""
        first, *others = self.peers
        first.start()
        self.wait_active(first)
        for peer in others:
            peer.start().wait_up()
        for peer in others:
            wait_until(lambda peer=peer: peer.info()["active_server"] == first.name, "a standby sees the active one")
        return self

    def wait_active(self, *among, within=10.0):
        """The one of these, or of all, that is ready for clients."""
        return wait_until(
            lambda: next((peer for peer in among or self.peers if peer.is_ready()), None), "a server is active", within
        )

    # --- what an operator does to the keys

    def active_entry(self):
        return self.etcd.get(self.prefix + "active")

    def state(self):
        """What outlives the servers, as the last of them wrote it."""
        return json.loads(base64.b64decode(self.etcd.get(self.prefix + "state")["value"]))

    def delete_active(self):
        return self.etcd.delete(self.prefix + "active")

    def revoke_lease(self):
        self.etcd.revoke(self.active_entry()["lease"])
