"""From the start of the server's program to the first lock that a client gets from it."""

import os
import socket
import struct
import subprocess
import time

from .errors import CannotMeasure
from .measurements import Contestant
from .servers import START_SECONDS, free_port

ACQUIRE = struct.pack(">BBIH", 0x01, 1, 60_000, 11) + b"first-grant"
ACQUIRED = 0x12
RETRY_SECONDS = 0.0002


def first_grant(server):
    """A contestant whose runs are one start each, figure `ms`. The server is to listen on a port that was
    free a moment ago, and the client connects until somebody does."""

    def run(options):
        address = ("127.0.0.1", free_port())
        command = server.command(options, "{}:{}".format(*address))
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        try:
            wait_for_grant(address, process, started + START_SECONDS)
            return {"ms": (time.monotonic() - started) * 1000}
        finally:
            process.kill()
            process.wait()

    return Contestant(server.name, run)


def wait_for_grant(address, process, deadline):
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(address, timeout=START_SECONDS) as client:
                client.sendall(ACQUIRE)
                answer = client.recv(64)
            if answer[:1] != bytes([ACQUIRED]):
                raise CannotMeasure(f"the first claim was answered with {answer.hex() or 'nothing'}")
            return
        except ConnectionRefusedError:
            if process.poll() is not None:
                break
            time.sleep(RETRY_SECONDS)
    raise CannotMeasure(f"{os.path.basename(process.args[0])} did not start or does not listen")
