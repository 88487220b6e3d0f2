"""Two network namespaces with a cable between them, for packets that vanish.

The server runs in one, clients open their sockets in the other. Needs root, iproute2 and nftables,
as scripts/setup installs them.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count()
_NAMED = pathlib.Path("/run/netns")
_ETC = pathlib.Path("/etc/netns")

SERVER_ADDRESS = "10.77.0.1"
CLIENT_ADDRESS = "10.77.0.2"


def run(*command, stdin=None):
    result = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=20)
    assert result.returncode == 0, f"{' '.join(command)}: {result.stderr.strip()}"
    return result.stdout


def _names_of(pid):
    """How the names of that process's namespaces begin. A number of a process is one within its namespace of processes
    alone, and /run may be shared with others (a container's)."""
    return f"monolock-{os.stat('/proc/self/ns/pid').st_ino}-{pid}-"


def _left_behind():
    """The names of what processes made that are gone. Where another has got the number since, it stays for now."""
    names = {path.name for folder in (_NAMED, _ETC) if folder.is_dir() for path in folder.iterdir()}
    ours = re.compile(_names_of(r"(\d+)") + r"\d+")
    return [name for name in names if (made := ours.fullmatch(name)) and not os.path.exists(f"/proc/{made[1]}")]


def _end_processes_in(name):
    """Servers outlive a run that is killed. Without the name nobody would find them any more."""
    listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, timeout=20).stdout
    for pid in map(int, listed.split()):
        with contextlib.suppress(OSError):
            process = os.pidfd_open(pid)
            try:
                if os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat(_NAMED / name).st_ino:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)


def _remove(name):
    subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)
    shutil.rmtree(_ETC / name, ignore_errors=True)


@functools.cache
def remove_left_behind():
    """What runs that were killed had no time to put away. Once in each process."""
    for name in _left_behind():
        _end_processes_in(name)
        _remove(name)


def require():
    """Ends the program with 2, in words, where no namespace can be made."""
    try:
        for command in ("ip", "nft"):
            assert shutil.which(command), f"{command} is missing"
        Namespace().remove()
    except (AssertionError, OSError, subprocess.SubprocessError) as why:
        print(
            "network namespaces cannot be made: run this as root (CAP_SYS_ADMIN and CAP_NET_ADMIN), with iproute2 and nftables: "
            f"{why}",
            file=sys.stderr,
        )
        sys.exit(2)


class Namespace:
    """A network namespace with its loopback up. What stands in its /etc/hosts may be said."""

    def __init__(self, hosts=None):
        remove_left_behind()
        self.name = f"{_names_of(os.getpid())}{next(_numbers)}"
        self._etc = _ETC / self.name
        if hosts is not None:
            self.write_etc("hosts", hosts)
        try:
            run("ip", "netns", "add", self.name)
            self.run("ip", "link", "set", "lo", "up")
        except BaseException:
            self.remove()
            raise

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
        _remove(self.name)


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
