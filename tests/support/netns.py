"""Two network namespaces with a cable between them, for packets that vanish.

The server runs in one, clients open their sockets in the other. Needs root, iproute2 and nftables,
as scripts/setup installs them.
"""

import contextlib
import ctypes
import itertools
import os
import pathlib
import shutil
import subprocess

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count()

SERVER_ADDRESS = "10.77.0.1"
CLIENT_ADDRESS = "10.77.0.2"


def run(*command, stdin=None):
    result = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=20)
    assert result.returncode == 0, f"{' '.join(command)}: {result.stderr.strip()}"
    return result.stdout


class Namespace:
    """A network namespace with its loopback up. What stands in its /etc/hosts may be said."""

    def __init__(self, hosts=None):
        self.name = f"monolock-{os.getpid()}-{next(_numbers)}"
        self._etc = pathlib.Path("/etc/netns", self.name)
        if hosts is not None:
            self.write_etc("hosts", hosts)
        run("ip", "netns", "add", self.name)
        self.run("ip", "link", "set", "lo", "up")

    @property
    def prefix(self):
        """Goes before a command that shall run inside; it execs, so the pid stays."""
        return ("ip", "netns", "exec", self.name)

    def run(self, *command, stdin=None):
        return run(*self.prefix, *command, stdin=stdin)

    def write_etc(self, name, text):
        """Programs that are started later have this file in /etc; written again, those that had it see that."""
        self._etc.mkdir(parents=True, exist_ok=True)
        (self._etc / name).write_text(text)

    @contextlib.contextmanager
    def entered(self):
        """Sockets made by this thread in the block belong to the namespace for good."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        inside = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _set_namespace(inside)
            try:
                yield
            finally:
                _set_namespace(home)
        finally:
            os.close(inside)
            os.close(home)

    def drop_packets(self, *matches):
        """From now on packets that match one of the rules vanish, both to and from here (nft syntax)."""
        rules = "".join(f"    {match} drop\n" for match in matches)
        chains = "".join(
            f"  chain {hook} {{\n    type filter hook {hook} priority 0;\n{rules}  }}\n"
            for hook in ("input", "output")
        )
        self.run("nft", "-f", "-", stdin=f"table inet faults {{\n{chains}}}\n")

    def pass_packets(self):
        self.run("nft", "flush", "ruleset")

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, timeout=20)
        shutil.rmtree(self._etc, ignore_errors=True)


def _set_namespace(descriptor):
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Cable:
    """A server side and a client side, joined."""

    def __init__(self):
        self.server_side = Namespace()
        self.client_side = Namespace()
        run(
            "ip", "link", "add", "cable", "netns", self.server_side.name, "type", "veth",
            "peer", "name", "cable", "netns", self.client_side.name,
        )  # fmt: skip
        for side, address in ((self.server_side, SERVER_ADDRESS), (self.client_side, CLIENT_ADDRESS)):
            side.run("ip", "addr", "add", f"{address}/24", "dev", "cable")
            side.run("ip", "link", "set", "cable", "up")

    def cut(self):
        """Packets vanish both ways, and nobody is told."""
        self.client_side.drop_packets('meta iifname "cable"', 'meta oifname "cable"')

    def mend(self):
        self.client_side.pass_packets()

    def remove(self):
        self.server_side.remove()
        self.client_side.remove()
