"""Asking before it counts: monolock -check, and monolockctl check-acl."""

import socket
import subprocess

import pytest

from ctl import ctl
from support.pki import DAY, HOUR
from support.server import binary, clean_environment, run_to_end
from support.tls_files import TlsFiles


@pytest.fixture
def files(authority, tmp_path):
    return TlsFiles(tmp_path, authority, rules=[("spiffe://lab/*", ["nightly", "db/?"]), ("ops", ["*"])])


# --- monolock -check


def check(files, *flags, **options):
    return run_to_end("-check", *files.flags(), *flags, **options)


def test_good_files_are_fine(files):
    result = check(files)
    assert (result.returncode, result.stderr) == (0, "")
    assert "TLS" in result.stdout and "2 rules" in result.stdout and result.stdout.endswith("\n")


def test_nothing_configured_is_fine():
    result = run_to_end("-check")
    assert (result.returncode, result.stderr) == (0, "")


def test_check_binds_nothing(files):
    """It says the same beside a running server of the same address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert check(files, "-listen", f"127.0.0.1:{taken.getsockname()[1]}").returncode == 0


def test_every_mistake_has_its_line(files, authority):
    files.serve(authority.issue_server(starts=-2 * DAY, ends=-HOUR))
    files.replace(files.client_ca, None)
    files.permit('{"rules":[{"identity":1,"locks":[]}],"more":2}')
    result = check(files)
    assert (result.returncode, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    for path, *words in (
        (files.certificate, "expired"),
        (files.client_ca,),
        (files.acl, "/rules/0/identity"),
        (files.acl, "/rules/0/locks"),
        (files.acl, "more"),
    ):
        assert sum(str(path) in line and all(word in line for word in words) for line in lines) == 1, lines
    assert len(lines) == 5, lines


SPOILT = {
    "rules": lambda files: files.permit('{"rules":1,"more":2}'),
    "key": lambda files: files.replace(files.key, b"garbage"),
    "certificate": lambda files: files.replace(files.certificate, None),
    "client CA": lambda files: files.replace(files.client_ca, b""),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_check_says_what_a_start_would(files, spoil):
    spoil(files)
    start = run_to_end("-listen", "127.0.0.1:0", *files.flags())
    assert start.returncode == 1 and start.stderr.count("\n") == 1
    result = check(files)
    assert (result.returncode, result.stdout) == (1, "")
    for line in result.stderr.splitlines():
        assert line.removeprefix("monolock: ") in start.stderr, (line, start.stderr)


def test_usage_comes_first(files):
    result = run_to_end("-check", "-tls-cert", str(files.certificate))
    assert result.returncode == 2 and "-tls-key" in result.stderr


@pytest.mark.parametrize("flag", ["-check", "-h", "-version"])
def test_output_that_cannot_be_written_is_an_error(files, flag):
    with open("/dev/full", "w") as full:
        words = [binary(), flag, *files.flags()]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=clean_environment(), timeout=20)
    assert (done.returncode, done.stderr) == (1, b"monolock: standard output cannot be written\n")


# --- monolockctl check-acl


def check_acl(files, *words):
    return ctl("check-acl", str(files.acl), *words)


def test_valid_rules(files):
    result = check_acl(files)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "identity, lock, rule",
    [
        ("spiffe://lab/a", "nightly", "/rules/0"),
        ("spiffe://lab/", "db/ü", "/rules/0"),
        ("ops", "", None),
        ("ops", "anything", "/rules/1"),
        ("spiffe://lab/a", "db/ab", None),
        ("spiffe://other/a", "nightly", None),
        ("Ops", "anything", None),
        ("*", "nightly", None),
    ],
)
def test_question_is_answered_as_the_server_would(files, identity, lock, rule):
    result = check_acl(files, "--identity", identity, "--lock", lock)
    if lock == "":
        assert result.returncode == 2, result
    elif rule:
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("allowed") and rule in result.stdout, result.stdout
    else:
        assert result.returncode == 77
        assert "denied" in result.stdout + result.stderr


def test_invalid_rules(files):
    files.permit('{"rules":[{"identity":"a","locks":[]},{"identity":"b","locks":["x"],"identity":"c"}],"x":1}')
    for words in ((), ("--identity", "b", "--lock", "x")):
        result = check_acl(files, *words)
        assert (result.returncode, result.stdout) == (1, "")
        for word in ("/rules/0/locks", "/rules/1", "/x"):
            assert word in result.stderr, result.stderr
        assert all(str(files.acl) in line for line in result.stderr.splitlines()), result.stderr


def test_a_file_that_is_gone(files):
    files.replace(files.acl, None)
    result = check_acl(files)
    assert result.returncode == 1 and str(files.acl) in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--identity", "a", "--lock", "b"],
        ["FILE", "--identity", "a"],
        ["FILE", "--lock", "a"],
        ["FILE", "FILE"],
        ["FILE", "--no-such"],
        ["FILE", "--identity", "a", "--lock", "x" * 256],
    ],
)
def test_usage_of_check_acl(files, words):
    result = ctl("check-acl", *(str(files.acl) if word == "FILE" else word for word in words))
    assert result.returncode == 2, result
    assert result.stdout == "" and len(result.stderr.splitlines()) == 1


def test_help_of_check_acl():
    for words in (["check-acl", "--help"], ["check-acl", "-h"], ["help", "check-acl"]):
        result = ctl(*words)
        assert (result.returncode, result.stderr) == (0, "")
        assert "--identity" in result.stdout and "--lock" in result.stdout


def test_answer_and_server_agree(start_server, files):
    """The same file, the same questions."""
    identities = ["spiffe://lab/a", "ops", "ops2", "spiffe://lab"]
    locks = ["nightly", "db/x", "db/xy", "other"]
    server = start_server("-threads", "2", tls=files)
    for who in identities:
        for lock in locks:
            asked = check_acl(files, "--identity", who, "--lock", lock).returncode
            with server.connect(who=who) as client:
                client.acquire(lock)
                got = type(client.next_frame()).__name__
            assert (asked, got) in ((0, "Acquired"), (77, "Error")), (who, lock)
