"""monolockctl audit: proves what the server wrote, finds each change that is made to it, shows it."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess

import pytest

from ctl import binary, clean_environment, ctl, state
from support import audit
from support.waiting import wait_until


def verify(*files, options=()):
    """(exit status, standard output); standard error must be empty."""
    done = ctl("audit", "verify", *options, *map(str, files))
    assert done.stderr == ""
    return done.returncode, done.stdout


def work(server, claims, seed, locks=4):
    """So many claims that come and go in a random order."""
    choose = random.Random(seed)
    clients = []
    while claims or clients:
        if claims and len(clients) < 10:
            claims -= 1
            clients.append(server.connect().acquire(f"lock-{choose.randrange(locks)}"))
        else:
            client = clients.pop(choose.randrange(len(clients)))
            if choose.random() < 0.5:
                while client.poll() is None:  # some see their first answer, some leave before
                    pass
            client.close()


@pytest.fixture
def log(start_server, threads, tmp_path):
    """The log of a server that worked and ended, in three files."""
    path = tmp_path / "audit.log"
    server = start_server("-threads", threads, "-audit-log", str(path))
    for number in (2, 1):
        work(server, 60, seed=number)
        path.rename(tmp_path / f"audit.log.{number}")
        server.signal(signal.SIGHUP)
        wait_until(path.exists, "the file is made anew")
    work(server, 60, seed=3)
    server.stop()
    return [tmp_path / "audit.log.2", tmp_path / "audit.log.1", path]


def test_what_the_server_wrote_is_proven(log):
    status, text = verify(*log)
    seen = audit.check(audit.read(*log))
    assert status == 0, text
    records = 2 * len(seen.grants)
    assert text == f"proven: {records} records in 3 files, {records // 2} grants, {records // 2} ends, 0 still held\n"
    whole = "".join(path.read_text(encoding="utf-8") for path in log)
    done = ctl("audit", "verify", "-", input=whole, stdin=None)
    assert (done.returncode, done.stdout) == (0, text.replace("3 files", "1 file"))


def test_files_in_the_wrong_order(log):
    status, text = verify(*reversed(log))
    assert status == 1
    assert text.startswith(f"{log[1]}:") or text.startswith(f"{log[2]}:")


def test_a_missing_file(log):
    """Without the newest there is nothing to miss; without the oldest ends may lack their grants; a hole is found."""
    assert verify(*log[:2])[0] == 0
    assert verify(*log[1:], options=["--continued"])[0] == 0
    assert verify(log[0])[0] == 0


def mutations(lines, choose):
    """(what, changed lines) of a log whose every grant has its end."""
    at = choose.randrange(len(lines))
    record = json.loads(lines[at])
    other = next(index for index in range(len(lines)) if json.loads(lines[index])["lock"] != record["lock"])

    def changed(**fields):
        text = json.dumps(record | fields, separators=(",", ":"), ensure_ascii=False)
        return lines[:at] + [text] + lines[at + 1 :]

    same_lock = [index for index, line in enumerate(lines) if json.loads(line)["lock"] == record["lock"]]
    place = same_lock.index(at)
    before = same_lock[place - 1] if place else same_lock[1]
    swapped = list(lines)
    swapped[at], swapped[before] = swapped[before], swapped[at]
    yield "a line is missing", lines[:at] + lines[at + 1 :]
    yield "a line stands twice", lines[: at + 1] + lines[at:]
    yield "two lines of a lock are swapped", swapped
    yield "another lock", changed(lock=json.loads(lines[other])["lock"])
    yield "another client", changed(remote_addr="203.0.113.9:1")
    yield "another identity", changed(identity="somebody")
    yield "another token", changed(token=record["token"] + 1_000_000_000)
    yield "no token", changed(token=0)
    yield "an older token", changed(token=1)
    yield "another event", changed(event={"granted": "released", "released": "granted"}[record["event"]])
    yield "an unknown event", changed(event="lent")
    yield "no such day", changed(time="2026-02-30T00:00:00.000Z")
    yield "one key more", changed(note="x")
    yield "a line is cut", lines[:at] + [lines[at][: choose.randrange(1, len(lines[at]))]] + lines[at + 1 :]
    yield "an empty line", lines[:at] + [""] + lines[at:]
    yield "two lines in one", lines[:at] + [lines[at] + lines[at]] + lines[at + 1 :]
    if record["event"] == "released":
        yield "an unknown reason", changed(reason="bored")
        yield "force that nobody used", changed(reason="force")


@pytest.mark.parametrize("threads", ["2"], indirect=True)
def test_each_mutation_is_found(log, tmp_path):
    lines = [line for path in log for line in path.read_text(encoding="utf-8").splitlines()]
    choose = random.Random(1)
    changed = tmp_path / "changed"
    for _ in range(3):
        for what, text in mutations(lines, choose):
            changed.write_text("".join(line + "\n" for line in text), encoding="utf-8")
            status, answer = verify(changed)
            assert status == 1, f"{what} is not found: {answer}"
            assert answer.startswith(f"{changed}:") and answer.count("\n") == 1, answer
    changed.write_text("\n".join(lines), encoding="utf-8")
    assert verify(changed) == (1, f"{changed}:{len(lines)}: the file ends within the line\n")


def test_a_server_that_is_killed(start_server, tmp_path):
    path = tmp_path / "audit.log"
    flags = ("-threads", "2", "-audit-log", str(path))
    first = start_server(*flags)
    owners = [first.owner(f"lock-{number}") for number in range(3)]
    wait_until(lambda: path.read_bytes().count(b"\n") == 3, "the grants are written")
    first.kill()
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"time":"2026-')  # as if it died within a write
    second = start_server(*flags)
    second.owner("lock-1").close()
    second.stop()
    status, text = verify(path)
    assert status == 1 and text.startswith(f"{path}:4: no record")
    status, text = verify(path, options=["--crashes"])
    assert status == 0 and "the end of 3 grants" in text and "1 line said" in text
    # The same without the broken line: only a grant over another one shows the crash.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(line + "\n" for line in lines if line.endswith("}")), encoding="utf-8")
    status, text = verify(path)
    assert status == 1 and text.startswith(f'{path}:4: lock "lock-1" is granted') and "has no end" in text
    status, text = verify(path, options=["--crashes"])
    assert status == 0 and "not proven: the end of" in text
    for owner in owners:
        owner.close()


def test_a_log_that_is_being_written(start_server, tmp_path):
    path = tmp_path / "audit.log"
    server = start_server("-audit-log", str(path))
    owner = server.owner("held")
    for seed in range(10):
        work(server, 20, seed)
        status, text = verify(path)
        assert status == 0, text
    wait_until(lambda: verify(path)[1].endswith("1 still held\n"), "all but one have their end")
    owner.close()


def test_what_cannot_be_read(tmp_path):
    for verb in ("verify", "stats", "tail"):
        done = ctl("audit", verb, str(tmp_path / "nothing"))
        assert (done.returncode, done.stdout) == (66, "")
        assert str(tmp_path / "nothing") in done.stderr and "No such file" in done.stderr
        assert ctl("audit", verb).returncode == 2
    assert ctl("audit").returncode == 2
    done = ctl("help", "audit")
    assert done.returncode == 0 and "verify" in done.stdout
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert ctl("audit", "--help", stdout=full, stderr=subprocess.DEVNULL).returncode == 74


def test_stats_count_what_is_there(log):
    seen = audit.check(audit.read(*log))
    done = ctl("audit", "stats", "--json", *map(str, log))
    assert done.returncode == 0, done.stderr
    stats = json.loads(done.stdout)
    by_lock = {lock["lock"]: lock for lock in stats["locks"]}
    assert by_lock.keys() == {record["lock"] for record in seen.grants.values()}
    for name, lock in by_lock.items():
        waits = [record["wait_ms"] for record in seen.grants.values() if record["lock"] == name]
        assert lock["grants"] == lock["graceful"] == len(waits)
        assert lock["wait_ms"]["max"] == max(waits)
    assert stats["total"]["grants"] == len(seen.grants)
    table = ctl("audit", "stats", *map(str, log)).stdout.splitlines()
    assert table[0].startswith("LOCK") and table[-1].startswith("(all)")
    assert len(table) == len(by_lock) + 2 and len({len(line) for line in table}) == 1


def test_tail(log):
    lines = log[2].read_text(encoding="utf-8").splitlines(keepends=True)
    assert ctl("audit", "tail", "--json", "-n", "3", str(log[2])).stdout == "".join(lines[-3:])
    assert ctl("audit", "tail", "--json", "-n", "0", str(log[2])).stdout == ""
    assert ctl("audit", "tail", "--json", "-n", "1000000", str(log[2])).stdout == "".join(lines)
    shown = ctl("audit", "tail", str(log[2])).stdout.splitlines()
    assert len(shown) == 10
    for line, text in zip(lines[-10:], shown):
        record = json.loads(line)
        for key in ("time", "event", "lock", "remote_addr"):
            assert record[key] in text
        assert f"token={record['token']}" in text and "\x1b" not in text


def test_tail_shows_the_last_lines_of_a_log_that_breaks_off(tmp_path):
    """What was named is shown: the line that breaks off is one of the last, and with -f it is none yet."""
    path = tmp_path / "audit.log"
    for text in ("1\n2\nbroken off", "1\nbroken off", "broken off", "\n\nbroken off", "1\n2\n", "\n\n", "\n", ""):
        path.write_text(text, encoding="utf-8")
        lines = [line + "\n" for line in text.removesuffix("\n").split("\n")] if text else []
        for count in range(5):
            shown = ctl("audit", "tail", "--json", "-n", str(count), str(path)).stdout
            assert shown == "".join(lines[len(lines) - min(count, len(lines)):]), (text, count)
    assert ctl("audit", "tail", "--json", "-", input="1\nbroken off", stdin=None).stdout == "1\nbroken off\n"


def reopen(server):
    before = server.reloads("audit")
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.reloads("audit") > before, "the file is opened anew")


class Follower:
    """monolockctl audit tail -f, from the first line on; `shown` is the file of what it shows."""

    def __init__(self, path, shown, lines=1000000):
        self._path, self._shown = path, shown
        command = [binary(), "audit", "tail", "-f", "--json", "-n", str(lines), str(path)]
        with open(shown, "wb") as out:
            self._process = subprocess.Popen(command, stdout=out, env=clean_environment())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def wait_shown(self, lines):
        """Until it has shown so many lines; it must not have shown more."""
        wait_until(lambda: self._shown.read_bytes().count(b"\n") >= lines, f"{lines} lines are shown")
        assert self._shown.read_bytes().count(b"\n") == lines
        assert self._process.poll() is None

    def wait_read_to(self, position):
        """Until it stands there in the file that the path names."""

        def there():
            folder = pathlib.Path(f"/proc/{self._process.pid}")
            with contextlib.suppress(FileNotFoundError):
                for fd in (folder / "fd").iterdir():
                    if os.readlink(fd) == str(self._path):
                        return f"pos:\t{position}\n" in (folder / "fdinfo" / fd.name).read_text()
            return False

        wait_until(there, f"it stands at {position}")

    def wait_opened(self):
        """Until it has the file open that the path names now; how many it has."""

        def opened():
            links = pathlib.Path(f"/proc/{self._process.pid}/fd")
            with contextlib.suppress(FileNotFoundError):  # one was closed meanwhile
                files = [path for path in map(os.readlink, links.iterdir()) if path.startswith(str(self._path.parent))]
                return len(files) if str(self._path) in files else 0
            return 0

        return wait_until(opened, "the file is opened")


@pytest.mark.parametrize("created_by", ["server", "rotator"])
def test_tail_follows_over_a_rotation(start_server, tmp_path, created_by):
    """However long the server writes to the file that was moved away: each event is shown once, in order."""
    path = tmp_path / "audit.log"
    server = start_server("-audit-log", str(path))
    files, lines = [], 0

    def happen(name):
        nonlocal lines
        server.owner(name).close()
        lines += 2

    happen("first")
    with Follower(path, tmp_path / "shown") as follower:
        for number in range(3):
            follower.wait_shown(lines)
            happen("before")
            files.append(tmp_path / f"audit.log.{number}")
            path.rename(files[-1])
            if created_by == "rotator":
                path.touch()
            for _ in range(4):  # the follower looks for the new file in between
                happen("between")
                follower.wait_shown(lines)
            happen("last before the signal")
            reopen(server)
            happen("after")
        follower.wait_shown(lines)
    server.stop()
    written = "".join(file.read_text(encoding="utf-8") for file in [*files, path])
    assert (tmp_path / "shown").read_text(encoding="utf-8") == written


def test_tail_follows_over_rotations_while_nothing_happens(start_server, tmp_path):
    """The server may be at any of the empty files, or still at the one before them."""
    path = tmp_path / "audit.log"
    server = start_server("-audit-log", str(path))
    server.owner("first").close()
    with Follower(path, tmp_path / "shown") as follower:
        follower.wait_shown(2)

        def rotate(number, tell):
            path.rename(tmp_path / f"audit.log.{number}")
            if tell:
                reopen(server)
            else:
                path.touch()
            assert follower.wait_opened() < 12, "descriptors are bounded"

        for number in range(12):
            rotate(number, tell=True)
        rotate(12, tell=False)
        server.owner("to the last but one").close()
        follower.wait_shown(4)
        for number in range(13, 25):
            rotate(number, tell=False)
        server.owner("to the same").close()
        follower.wait_shown(6)
        reopen(server)
        server.owner("to the newest").close()
        follower.wait_shown(8)
        assert follower.wait_opened() == 2, "it, and what is shown"


def test_tail_follows_whatever_becomes_of_a_file(tmp_path):
    path = tmp_path / "audit.log"
    path.write_text("1\n2\n3\n", encoding="utf-8")
    with Follower(path, tmp_path / "shown") as follower:
        follower.wait_shown(3)
        path.write_text("4\n", encoding="utf-8")  # cut off and written anew, in place
        follower.wait_shown(4)
        with open(path, "a", encoding="utf-8") as file:
            path.unlink()
            file.write("5\n")
            file.flush()
            follower.wait_shown(5)
            path.mkdir()
            file.write("6\n")
            file.flush()
            follower.wait_shown(6)
            path.rmdir()
            (tmp_path / "shorter").write_text("9\n", encoding="utf-8")
            file.write("7\n8\nbroken off")
            file.flush()
            (tmp_path / "shorter").rename(path)
            follower.wait_shown(9)
        path.rename(tmp_path / "away")
        (tmp_path / "away").rename(path)
        with open(path, "a", encoding="utf-8") as file:
            file.write("10\n")
        follower.wait_shown(10)
    assert (tmp_path / "shown").read_text(encoding="utf-8") == "".join(f"{number}\n" for number in range(1, 11))


@pytest.mark.parametrize("left", [0, 3], ids=["whole", "in part"])
def test_tail_follows_a_line_that_is_taken_back(tmp_path, left):
    """As the server does at each try while the disk is full: nothing that was shown is shown again."""
    path = tmp_path / "audit.log"
    path.write_text("1\n2\n", encoding="utf-8")
    with Follower(path, tmp_path / "shown") as follower:
        follower.wait_shown(2)
        for number in (3, 4, 5):
            whole = path.stat().st_size
            with open(path, "a", encoding="utf-8") as file:
                file.write("half a li")
            follower.wait_read_to(whole + 9)
            os.truncate(path, whole + left)
            follower.wait_read_to(whole + left)
            os.truncate(path, whole)
            follower.wait_read_to(whole)
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{number}\n")
            follower.wait_shown(number)
    assert (tmp_path / "shown").read_text(encoding="utf-8") == "1\n2\n3\n4\n5\n"


@pytest.mark.parametrize("lines", [0, 1])
def test_tail_follows_from_a_line_that_is_begun(tmp_path, lines):
    """It is none of the last lines, and is shown once it is whole, also if it is taken back before."""
    path = tmp_path / "audit.log"
    path.write_text("1\n2\nhalf", encoding="utf-8")
    with Follower(path, tmp_path / "shown", lines) as follower:
        follower.wait_read_to(8)
        follower.wait_shown(lines)
        with open(path, "a", encoding="utf-8") as file:
            file.write(" and half\nhalf")
        follower.wait_shown(lines + 1)
    with Follower(path, tmp_path / "again", lines) as follower:
        follower.wait_read_to(path.stat().st_size)
        os.truncate(path, path.stat().st_size - 4)
        follower.wait_read_to(path.stat().st_size)
        with open(path, "a", encoding="utf-8") as file:
            file.write("3\n")
        follower.wait_shown(lines + 1)
    assert (tmp_path / "shown").read_text(encoding="utf-8") == "2\n" * lines + "half and half\n"
    assert (tmp_path / "again").read_text(encoding="utf-8") == "half and half\n" * lines + "3\n"


# --- standard streams that do not block, since whoever started it has made them so


def not_blocking_pipe():
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def filled(end):
    """How many bytes the pipe took."""
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            count += os.write(end, b"x" * 4096)
    return count


@pytest.mark.parametrize("words", [["tail", "-n", "5000"], ["stats"], ["report", "-o", "-"], ["--help"]], ids=lambda words: words[0])
def test_a_slow_reader_gets_all(tmp_path, words):
    path = tmp_path / "audit.log"
    line = '{{"time":"2026-03-01T09:30:00.250Z","event":"granted","lock":"l","identity":"","remote_addr":"192.0.2.1:5","token":{},"wait_ms":1}}\n'
    path.write_text("".join(map(line.format, range(1, 5001))), encoding="utf-8")
    command = ["audit", *words] + ([] if words == ["--help"] else [str(path)])
    expected = ctl(*command).stdout
    out, inside = not_blocking_pipe()
    before = filled(inside)
    process = subprocess.Popen([binary(), *command], stdout=inside, stderr=subprocess.PIPE, env=clean_environment())
    os.close(inside)
    os.set_blocking(out, True)
    with process, open(out, "rb") as reader:
        wait_until(lambda: state(process.pid) in ("S", "Z"), "it waits for the reader")
        shown = reader.read()[before:].decode()
        assert (process.wait(), process.stderr.read()) == (0, b"")
    if words[0] == "report":  # says when it was made
        shown, expected = len(shown), len(expected)
    assert shown == expected


def test_a_slow_writer_is_read_to_its_end(tmp_path):
    inside, out = not_blocking_pipe()
    with contextlib.ExitStack() as cleanup:
        process = cleanup.enter_context(subprocess.Popen(
            [binary(), "audit", "tail", "--json", "-"], stdin=inside, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
        ))  # fmt: skip
        os.close(inside)
        with open(out, "wb", buffering=0) as writer:
            for number in (1, 2):
                wait_until(lambda: state(process.pid) in ("S", "Z"), "it waits for the writer")
                writer.write(b"%d\n" % number)
        assert process.communicate(timeout=20) == (b"1\n2\n", b"") and process.returncode == 0
