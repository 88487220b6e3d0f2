"""Each page's commands, from its first to its last, in one shell: as they stand, at the addresses and paths that they name.
That needs namespaces of their own for network, mounts and processes, and so root."""

import contextlib
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import time

import book
import pytest
from support import explained, server as servers
from support.pki import Authority, dns
from support.waiting import wait_until

HOSTS = "127.0.0.1 localhost a.example lock-1 monolock-0.monolock\n127.0.0.2 b.example lock-2 monolock-1.monolock\n127.0.0.9 locks.example\n"
SETUP = f"""
ip link set lo up
for address in 10.0.0.4 10.0.0.5 10.0.0.7 10.0.0.9; do ip address add $address/32 dev lo; done
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log && mkdir /run/monolock /var/log/monolock
printf '{HOSTS}' >hosts && mount --bind hosts /etc/hosts
echo ready
read -r end
"""
ENDS_WITHIN = 30.0


def enough():
    """Why there are no stories here, or nothing."""
    for program in ("unshare", "nsenter", "ip", "mount"):
        if shutil.which(program) is None:
            return f"there is no {program} here"
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", "/run"],
                           capture_output=True, text=True, timeout=30)
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode else None


def paths():
    return [str(pathlib.Path(os.environ[name]).parent) for name in ("MONOLOCK_BIN", "MONOLOCKCTL_BIN")]


class Story:
    """A machine of its own for one page: a scratch folder, a shell, and other terminals."""

    def __init__(self, folder, patience=8.0):
        self.folder = folder
        self.patience = patience
        self.environment = servers.clean_environment({"PATH": ":".join([*paths(), os.environ["PATH"]]), "HOME": str(folder)})
        (folder / "build").mkdir()
        for name in ("MONOLOCK_BIN", "MONOLOCKCTL_BIN"):
            (folder / "build" / pathlib.Path(os.environ[name]).name).symlink_to(os.environ[name])
        self._files = contextlib.ExitStack()
        flags = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._machine = self._start("unshare", *flags, "bash", "-euc", SETUP, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._machine.stdout.readline() == "ready\n"
        (child,) = pathlib.Path(f"/proc/{self._machine.pid}/task/{self._machine.pid}/children").read_text().split()
        self._inside = ["nsenter", "--target", child, "--net", "--mount", "--pid", "--wd=" + str(folder)]
        reader, writer = os.pipe()
        self._ended = self._files.enter_context(os.fdopen(reader))
        self._shell = self._start(*self._inside, "bash", "-c", f"exec 9>&{writer} {writer}>&-; exec bash -s",
                                  stdin=subprocess.PIPE, pass_fds=(writer,))
        os.close(writer)
        self._blocks, self._terminals = 0, []

    def _start(self, *words, **options):
        return subprocess.Popen(words, cwd=self.folder, env=self.environment, text=True, **options)

    def end(self):
        self._shell.kill()
        self._shell.wait()
        self._machine.stdin.close()  # all that is inside ends with it
        for process in (self._machine, *self._terminals):
            process.wait(30)
        for process in (self._shell, self._machine):
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()
        self._files.close()

    def follow(self, text, strict=True):
        """In the shell: what it printed, and its status."""
        self._blocks += 1
        script = self.folder / f".block-{self._blocks}"
        output = self.folder / f".output-{self._blocks}"
        script.write_text(text)
        before = "set -eo pipefail" if strict else "set +e; (exit $last)"
        self._shell.stdin.write(f"{{ {before}; . {script}; }} </dev/null >{output} 2>&1 9>&-\nlast=$?; echo $last >&9\n")
        self._shell.stdin.flush()
        ready, _, _ = select.select([self._ended], [], [], ENDS_WITHIN)
        assert ready, f"{text}\ndoes not end within {ENDS_WITHIN} s and says:\n{output.read_text()}"
        status = self._ended.readline()
        assert status and (not strict or status == "0\n"), f"{text}\nsays:\n{output.read_text()}"
        return output.read_text()

    def other_terminal(self, *words):
        """Something that goes on. Its output is looked at until it says what is waited for."""
        log = self._files.enter_context(open(self.folder / f".terminal-{len(os.listdir(self.folder))}", "w+"))
        self._terminals.append(self._start(*self._inside, *words, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return lambda: pathlib.Path(log.name).read_text()

    def serve(self, command):
        """A server, as the page starts it; returns when it listens."""
        told = self.other_terminal("bash", "-c", command)
        wait_until(lambda: 'msg="listening"' in told() or "level=error" in told(), f"{command} listens: {told()}")
        assert 'msg="listening"' in told(), told()

    def read_back(self, block):
        """A dialogue: each command is given, and what it says compared."""
        for command, wanted in dialogue(block.text):
            deadline = time.monotonic() + self.patience
            while (heard := comparable(self.follow(command, strict=False))) != comparable(wanted):
                assert time.monotonic() < deadline, f"{block.where}: {command}\nsays\n{heard}\nand not\n{comparable(wanted)}"
                time.sleep(0.02)  # what is still going on has to be over first


def dialogue(text):
    """Each command of a console, and what stands below it."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)
    assert parts[0] == "" and len(parts) > 1, "a console begins with a command"
    return list(zip(parts[1::2], parts[2::2]))


def comparable(text):
    """Without what differs from one time to the next."""
    for pattern, word in (
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"(\d+\.\d+\.\d+\.\d+):\d+", r"\1:PORT"),
        (r"\b\d{13,}\b", "TOKEN"),
        (r"\b(\d+(\.\d+)?(ms|[smhd]))+\b", "DURATION"),
        (r"\bid \d+", "id N"),
    ):
        text = re.sub(pattern, word, text)
    return "\n".join(explained.squeeze(line) for line in text.splitlines() if line.strip())


# --- what a page takes for granted


def a_server(story):
    """What README.md starts with make run."""
    story.serve("monolock")


def three_audit_logs(story):
    """The server of the page has been rotated twice, and two of its owners are still there."""
    story.serve("monolock -listen 127.0.0.8:7071 -audit-log audit.log")
    (pid,) = story.follow("pgrep -f 127.0.0.8").split()[:1]
    story.follow(f"""
        run() {{ monolockctl run --server 127.0.0.8:7071 "$@"; }}
        wait_for() {{ until "$@"; do sleep 0.01; done; }}
        records() {{ [ "$(cat "$1" | wc -l)" = "$2" ]; }}
        rotate() {{ wait_for records audit.log "$2"; mv audit.log "$1"; kill -HUP {pid}; wait_for test -e audit.log; }}
        run nightly -- true
        rotate audit.log.2 2
        run nightly -- true
        rotate audit.log.1 2
        for name in one two; do run $name -- sleep 600 & done
        wait_for records audit.log 2
    """)


def a_fleet(story):
    """Whom docs/monolockctl.md shows, and what its runs need."""
    (story.folder / "import.sh").write_text("#!/bin/sh\n")
    (story.folder / "import.sh").chmod(0o755)
    (story.folder / "authority").mkdir()
    authority = Authority(story.folder / "authority")
    listed = authority.issue_server(names=[dns("locks.example")])
    worker = authority.issue_client("worker")
    for file, source in (("ca.pem", authority.certificate), ("worker.pem", worker.certificate), ("worker.key", worker.key)):
        shutil.copy(source, story.folder / file)
    story.serve("monolock -listen 127.0.0.1:7070")
    story.serve(f"monolock -listen 127.0.0.9:7070 -tls-cert {listed.certificate} -tls-key {listed.key} -tls-client-ca ca.pem")
    story.serve("monolock -listen 127.0.0.3:7070 -admin-listen unix:/run/monolock/admin.sock")
    told = story.other_terminal(sys.executable, str(book.HERE / "fleet.py"), "127.0.0.3")
    wait_until(lambda: told() == "there\n", "the fleet is there")
    (story.folder / "acl.json").write_text('{"rules": [{"identity": "spiffe://prod/*", "locks": ["db/*"]}]}')


def two_servers(story):
    """Behind the names of docs/high-availability.md; one serves."""
    (story.folder / "import.sh").write_text("#!/bin/sh\n")
    (story.folder / "import.sh").chmod(0o755)
    story.serve("monolock -listen 127.0.0.2:7070")


# A page with programs has a server for them, if nothing else is said.
SCENES = {
    "README.md": a_server,
    "docs/audit.md": three_audit_logs,
    "docs/high-availability.md": two_servers,
    "docs/monolockctl.md": a_fleet,
}


def is_server(block):
    """It would go on: for another terminal."""
    return re.match(r"monolock\b(?!.*(-check|-h\b|-version|&$))", block.text) is not None


PAGES = sorted({block.page for block in book.Exceptions().ours() if block.language in ("sh", "console") or block.is_program})


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_a_story(page, tmp_path):
    if enough():
        pytest.skip(enough())
    story = Story(tmp_path)
    try:
        blocks = book.Exceptions().ours(book.blocks_of(page))
        if page in SCENES or any(block.is_program for block in blocks):
            SCENES.get(page, a_server)(story)
        for block in blocks:
            if block.is_program:
                assert story.follow(f"{os.environ['DOCS_PROGRAMS']}/{block.name}"), f"{block.where}: it says nothing"
            elif block.language == "console":
                story.read_back(block)
            elif block.language == "sh" and is_server(block):
                story.serve(block.text)
            elif block.language == "sh":
                story.follow(block.text)
    finally:
        story.end()


def test_a_story_that_is_not_so_is_noticed(tmp_path):
    if enough():
        pytest.skip(enough())
    for number, text in enumerate(("$ echo one\ntwo\n", "$ echo one\n", "$ true\none\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        story = Story(folder, patience=0.0)
        try:
            with pytest.raises(AssertionError, match="and not"):
                story.read_back(book.Block("page", 1, "console", text))
            with pytest.raises(AssertionError, match="says"):
                story.follow("false\ntrue\n")
        finally:
            story.end()
