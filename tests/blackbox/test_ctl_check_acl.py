"""monolockctl check-acl: is the file valid, may this client claim that lock, and by which rule."""

import json
import os

import pytest

from ctl import ctl

RULES = {
    "rules": [
        {"identity": "spiffe://prod/*", "locks": ["db/*", "cache"]},
        {"identity": "spiffe://prod/import", "locks": ["nightly"]},
        {"identity": "*", "locks": ["public/?"]},
    ]
}


@pytest.fixture
def acl(tmp_path):
    path = tmp_path / "acl.json"
    path.write_text(json.dumps(RULES))
    return path


def ask(path, identity, lock):
    done = ctl("check-acl", str(path), "--identity", identity, "--lock", lock)
    assert done.stderr == "" and done.stdout.count("\n") == 1, done
    return done.returncode, done.stdout


def test_a_valid_file(acl):
    done = ctl("check-acl", str(acl))
    assert (done.returncode, done.stdout, done.stderr) == (0, "valid: 3 rules\n", "")


def test_whether_a_claim_is_allowed_and_by_which_rule(acl):
    for identity, lock, rule in [
        ("spiffe://prod/import", "db/orders", "/rules/0"),
        ("spiffe://prod/import", "nightly", "/rules/1"),
        ("spiffe://test/import", "public/ü", "/rules/2"),
    ]:
        status, said = ask(acl, identity, lock)
        assert status == 0 and said.startswith(f"allowed by rule {rule}: "), said
    for identity, lock in [
        ("spiffe://prod/web", "nightly"),
        ("spiffe://test/import", "db/orders"),
        ("*", "nightly"),
        ("spiffe://test/import", "public/ab"),
    ]:
        status, said = ask(acl, identity, lock)
        assert status == 77 and said.startswith("denied"), said


def test_all_mistakes_each_on_a_line_of_its_own(acl):
    acl.write_text('{"rules":[{"identity":7,"locks":[]},\n{"lock":["x"]},]}')
    for question in ([], ["--identity", "a", "--lock", "x"]):
        done = ctl("check-acl", str(acl), *question)
        assert done.returncode == 1 and done.stdout == ""
        lines = done.stderr.splitlines()
        assert all(line.startswith(f"monolockctl: {acl}:") for line in lines), lines
        for place in ("/rules/0/identity", "/rules/0/locks", "/rules/1/lock:", f"{acl}:2:16:"):
            assert any(place in line for line in lines), (place, lines)


def test_a_file_that_is_not_there(tmp_path):
    done = ctl("check-acl", str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stderr == f"monolockctl: {tmp_path}/none: No such file or directory\n"
    done = ctl("check-acl", str(tmp_path))
    assert done.returncode == 1 and "not a regular file" in done.stderr


def test_an_answer_that_cannot_be_written_is_no_answer(acl):
    with open("/dev/full", "w") as full:
        done = ctl("check-acl", str(acl), stdout=full, stderr=-1)
    assert done.returncode == 74 and "standard output" in done.stderr


def test_usage(acl):
    for words in ([], [str(acl), "stray"], [str(acl), "--identity", "a"], [str(acl), "--lock", ""]):
        done = ctl("check-acl", *words)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.count("\n") == 1 and "help check-acl" in done.stderr, done.stderr
    done = ctl("check-acl", "--help")
    assert done.returncode == 0 and "--identity" in done.stdout and done.stderr == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(acl):
    acl.chmod(0)
    done = ctl("check-acl", str(acl))
    assert done.returncode == 1 and "Permission denied" in done.stderr
