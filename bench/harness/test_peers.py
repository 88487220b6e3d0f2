"""Starting, counting and ending a peer, with programs that are everywhere."""

import pathlib
import subprocess

import pytest

from .errors import CannotMeasure
from .options import parse_options
from .peers import Peer, accounting, own_cgroup


class Stand(Peer):
    """A peer that is a shell command and ready as soon as it runs."""

    shell = "exec sleep 60"

    def program(self):
        return "/bin/sh"

    def command(self, port, options):
        return [self.program(), "-c", self.shell]

    def ready(self, port):
        return True


class Broken(Stand):
    shell = "echo first; echo the port is taken; exit 1"

    def ready(self, port):
        raise ConnectionRefusedError


@pytest.fixture
def options(tmp_path):
    made = parse_options(["--build-dir", str(tmp_path)])
    made.scratch = tmp_path
    return made


def is_there(pid):
    return pathlib.Path(f"/proc/{pid}").exists()


def test_a_peer_is_ended_by_its_process_id_and_leaves_no_control_group(options):
    with Stand("stand", "driver").started(options) as running:
        flags = dict(zip(running.flags[::2], running.flags[1::2]))
        assert flags["--server"] == running.address
        assert is_there(flags["--pid"])
        cgroup = flags.get("--cgroup")
        if cgroup:
            assert pathlib.Path(cgroup, "cgroup.procs").read_text().split() == [flags["--pid"]]
    assert not is_there(flags["--pid"])
    assert cgroup is None or not pathlib.Path(cgroup).exists()


def test_a_peer_that_does_not_start_says_why(options):
    with pytest.raises(CannotMeasure, match="stand did not start: first / the port is taken"):
        with Broken("stand", "driver").started(options):
            pass


def test_a_peer_without_its_driver_is_absent(options):
    stand = Stand("stand", "driver")
    assert stand.absent(options) == "driver was not built"
    options.folder.mkdir()
    (options.folder / "driver").touch()
    assert stand.absent(options) is None


def test_how_cpu_is_counted_is_found_out_without_leaving_anything(monkeypatch):
    probes = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words: probes.append(start(*words)) or probes[-1])
    assert accounting().startswith(("a control group", "its processes"))
    [probe] = probes
    assert not is_there(probe.pid)
    assert own_cgroup() is None or not (own_cgroup() / f"monolock-bench-{probe.pid}").exists()


def test_our_own_control_group_is_a_folder_if_there_is_one():
    folder = own_cgroup()
    assert folder is None or (folder / "cgroup.procs").exists()
