"""docs/security.md does what it says: its commands are run as they stand, on a free port."""

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from support import server as servers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
ADDRESS = "127.0.0.1:7443"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def blocks():
    found = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    here = f"127.0.0.1:{free_port()}"
    return [block.replace(ADDRESS, here) for block in found]


def block_with(blocks, text):
    (block,) = [block for block in blocks if text in block]
    return block


def run(script, folder, check=True):
    path = f"{Path(os.environ['MONOLOCK_BIN']).parent}:{Path(os.environ['MONOLOCKCTL_BIN']).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=servers.clean_environment({"PATH": path}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=check,
    )


@pytest.fixture(scope="module")
def lab(blocks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    run(block_with(blocks, "openssl req -x509"), folder)
    return folder


def test_the_lab_serves_and_refuses(blocks, lab):
    start = block_with(blocks, "acl.json &")
    # The script ends its server itself: it is the shell's child.
    wait = 'trap "kill $!; wait $! || true" EXIT; for i in {1..100}; do bash -c "</dev/tcp/%s" 2>/dev/null && break; sleep 0.1; done'
    address = re.search(r"-listen (\S+)", start)[1].replace(":", "/")
    done = run(start + "\n" + wait % address + "\n" + block_with(blocks, "never printed"), lab)
    assert done.stdout.splitlines() == ["it is mine", "refused with 77"], done.stderr
    assert "not authorized" in done.stderr or "not permitted" in done.stderr


def test_the_check_finds_nothing_wrong(blocks, lab):
    run(block_with(blocks, "monolock -check -tls-cert"), lab)


def test_the_acl_is_explained(blocks, lab):
    done = run(block_with(blocks, "check-acl acl.json --identity"), lab)
    assert "allowed" in done.stdout
