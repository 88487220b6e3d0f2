"""What systemd does for a service: hears its messages, and passes it sockets that listen already."""

import os
import socket
import sys
import time

from .waiting import PATIENCE


class NotifySocket:
    """The service manager's end of sd_notify(3). An address that begins with @ is in the abstract namespace."""

    def __init__(self, address):
        self.address = str(address)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address.replace("@", "\0", 1) if self.address.startswith("@") else self.address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def env(self, watchdog=None):
        """Variables for the service; watchdog are seconds as WatchdogSec= says."""
        variables = {"NOTIFY_SOCKET": self.address}
        if watchdog is not None:
            variables["WATCHDOG_USEC"] = str(round(watchdog * 1e6))
        return variables

    def next(self, within=PATIENCE):
        """The next message, a dict in its order; None when none comes in time."""
        self._socket.settimeout(within)
        try:
            message = self._socket.recv(4096).decode("utf-8")
        except (socket.timeout, BlockingIOError):
            return None
        pairs = [line.split("=", 1) for line in message.split("\n")]
        assert len(dict(pairs)) == len(pairs), f"a variable twice: {message!r}"
        return dict(pairs)

    def waiting(self):
        """All messages that are here already."""
        messages = []
        while (message := self.next(within=0)) is not None:
            messages.append(message)
        return messages

    def until(self, key, within=PATIENCE):
        """All messages up to the first one that sets this variable."""
        end = time.monotonic() + within
        messages = []
        while (message := self.next(max(0, end - time.monotonic()))) is not None:
            messages.append(message)
            if key in message:
                return messages
        raise AssertionError(f"no {key} within {within} s: {messages}")


# Puts the descriptors where they belong, as no shell can, and becomes the service.
_PASS = """
import fcntl, os, sys
fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1].split(",")]
os.closerange(3, 100)
for number, fd in enumerate(fds, 3):
    os.dup2(fd, number)
os.closerange(100, 100 + len(fds))
os.environ["LISTEN_PID"] = sys.argv[2] or str(os.getpid())
os.execvp(sys.argv[3], sys.argv[3:])
"""


def passing(*named, listen_pid=""):
    """Options of Server, or of run_to_end, that hand over pairs of a name and a socket. The sockets stay
    open here, as they do in systemd. listen_pid is another process that they are meant for."""
    fds = [sock.fileno() for _, sock in named]
    return {
        "prefix": [sys.executable, "-ISc", _PASS, ",".join(map(str, fds)), str(listen_pid)],
        "env": {"LISTEN_FDS": str(len(fds)), "LISTEN_FDNAMES": ":".join(name for name, _ in named)},
        "pass_fds": fds,
    }


def listening_socket(path=None):
    """As a socket unit makes one, blocking: on a free port of 127.0.0.1, or at a path."""
    if path is None:
        return socket.create_server(("127.0.0.1", 0), backlog=100)
    made = socket.socket(socket.AF_UNIX)
    made.bind(os.fspath(path))
    made.listen(100)
    return made
