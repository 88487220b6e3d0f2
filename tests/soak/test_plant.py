"""The planted leak leaks: a compiler once had left its memory out."""

import os
import subprocess
import sys

from .running import planted

CONNECTIONS = 4000
PROGRAM = f"""
import os, socket

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

listener = socket.create_server(("127.0.0.1", 0))
def connect(times):
    for _ in range(times):
        with socket.create_connection(listener.getsockname()), listener.accept()[0]:
            pass

connect(100)
before = resident(), len(os.listdir("/proc/self/fd"))
connect({CONNECTIONS})
print(resident() - before[0], len(os.listdir("/proc/self/fd")) - before[1])
"""


def growth(environment):
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return map(int, done.stdout.split())


def test_memory_and_descriptors(tmp_path):
    resident, descriptors = growth(planted(tmp_path))
    assert resident >= CONNECTIONS * 1024
    assert descriptors == CONNECTIONS // 100


def test_nothing_without_it():
    resident, descriptors = growth({})
    assert resident < CONNECTIONS * 1024 / 4
    assert descriptors == 0
