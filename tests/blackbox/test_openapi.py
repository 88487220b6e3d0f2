"""The server answers as docs/openapi.yaml says: every operation, every status it can be made to give."""

import json
import pathlib
from urllib.parse import quote

import jsonschema
import pytest
import yaml

from support.http import HttpConnection, fetch

DOCUMENT = yaml.safe_load(
    (pathlib.Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml").read_text(encoding="utf-8")
)
METHODS = ("get", "post", "delete")


def operations():
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in item:
                yield item[method]["operationId"], method.upper(), path, item[method]["responses"]


def described(responses, status):
    response = responses.get(str(status), responses["default"])
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return response["content"]


def check(answer, responses):
    content = described(responses, answer.status)
    kind = answer.value("Content-Type")
    assert kind in content, f"{kind} is not described for {answer.status}"
    schema = content[kind]["schema"] | {"components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(schema).validate(json.loads(answer.text))


def test_a_window_is_as_described(managed):
    (responses,) = [each[-1] for each in operations() if each[0] == "list"]
    with managed.owner("one"), managed.waiter("one"):
        for parameters in ["sort=waiters", "sort=held&limit=1&waiters=0", "sort=name&from=7&match=*"]:
            answer = fetch(managed.admin_address, f"/api/locks?{parameters}")
            assert answer.status == 200
            check(answer, responses)
        answer = fetch(managed.admin_address, "/api/lock/history?name=one")
        assert len(json.loads(answer.text)["history"]) == 1
        check(answer, next(each[-1] for each in operations() if each[0] == "history"))


@pytest.fixture
def managed(start_server):
    return start_server("-admin-listen", "127.0.0.1:0")


def filled(path, name, who):
    target = path.replace("{name}", quote(name, safe="")).replace("{remote_addr}", str(who))
    if path.startswith("/api/lock") and not path.startswith("/api/locks"):
        target += "?name=" + quote(name, safe="")
        if path.endswith("/waiter"):
            target += f"&id={who}"
    return target


@pytest.mark.parametrize("operation, method, path, responses", operations(), ids=lambda value: str(value)[:30])
def test_operation(managed, operation, method, path, responses):
    owner, waiter = managed.owner("de/scribed"), managed.waiter("de/scribed")
    lock = json.loads(fetch(managed.admin_address, "/api/lock?name=de/scribed").text)
    target = filled(path, "de/scribed", lock["waiters"][0]["id"])
    if operation == "events":
        with HttpConnection(managed.admin_address) as stream:
            head = stream.ask(method, target).head()
            assert head.status == 200 and head.value("Content-Type") in described(responses, 200)
    else:
        if operation.startswith("release"):
            stale = target + ("&" if "?" in target else "?") + "token=1"
            conflict = fetch(managed.admin_address, stale, method=method)
            assert conflict.status == 409
            check(conflict, responses)
        answer = fetch(managed.admin_address, target, method=method)
        assert answer.status == 200, answer
        check(answer, responses)
    if "{name}" in path or "name=" in target and operation != "history":
        missing = fetch(managed.admin_address, filled(path, "not there", 1), method=method)
        assert missing.status == 404
        check(missing, responses)
    for refused, status in [
        (fetch(managed.admin_address, target + ("&" if "?" in target else "?") + "unknown=1", method=method), 400),
        (fetch(managed.admin_address, target, method=method, fields=[("Host", "evil.example")]), 403),
        (fetch(managed.admin_address, target, method="PATCH"), 405),
        (fetch(managed.admin_address, target, method=method, body=b"x" * 10_000), 413),
        (fetch(managed.admin_address, target, method=method, fields=[("X", "x" * 10_000)]), 431),
    ]:
        assert refused.status == status
        check(refused, responses)
    owner.close()
    waiter.close()


def test_every_endpoint_is_described():
    """The words of every path in the document, and nothing undocumented beside them."""
    assert set(DOCUMENT["paths"]) == {
        "/api/info", "/api/locks", "/api/locks/{name}", "/api/locks/{name}/release",
        "/api/locks/{name}/waiters/{remote_addr}", "/api/lock", "/api/lock/release", "/api/lock/waiter",
        "/api/lock/history", "/api/events",
    }
    jsonschema.Draft202012Validator.check_schema(
        {"$defs": DOCUMENT["components"]["schemas"]}
    )
