"""deploy/container, deploy/kubernetes and deploy/helm, held against the server that they start. (What needs helm, a
container engine or the schemas of Kubernetes is in tests/containers.)"""

import json
import pathlib
import re
import shlex
import stat

import jsonschema
import pytest
import yaml

from ctl import address_text, ctl
from support.http import fetch
from support.server import run_to_end

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "monolock"
MANIFESTS = ("single", "failover")
USER = 65532


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def manifest(name):
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / f"{name}.yaml").read_text(encoding="utf-8"))
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}


def pod_of(name):
    return manifest(name)["StatefulSet", "monolock"]["spec"]["template"]["spec"]


def server_help():
    return run_to_end("-h").stdout


def flags():
    return set(re.findall(r"^ +(-[\w-]+)", server_help(), re.M))


def variables():
    return set(re.findall(r"MONOLOCK_\w+", server_help())) | {"MONOLOCK_ADMIN"}  # monolockctl's own


def instructions():
    """Of the Containerfile: the last stage, as (word, rest)."""
    text = (DEPLOY / "container" / "Containerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
    last = max(index for index, line in enumerate(lines) if line.startswith("FROM "))
    return [tuple(line.split(None, 1)) for line in lines[last:] if line.strip()]


def the(word):
    (rest,) = [rest for first, rest in instructions() if first == word]
    return rest


# --- the image


def test_the_image_runs_what_is_there_as_nobody():
    assert the("FROM") == "scratch" and the("USER") == f"{USER}:{USER}" and the("STOPSIGNAL") == "SIGTERM"
    assert json.loads(the("ENTRYPOINT")) == ["/usr/bin/monolock"]
    settings = dict(pair.split("=", 1) for pair in shlex.split(the("ENV")))
    assert settings.keys() - {"PATH"} <= variables() and settings["PATH"] == "/usr/bin"
    default = re.search(r"^ +-listen\b.*?0\.0\.0\.0:(\d+)", server_help(), re.M | re.S)[1]
    assert the("EXPOSE").split() == [default, settings["MONOLOCK_OPS_LISTEN_ADDRESS"].removeprefix(":")]


def test_the_health_check_is_a_command_that_works(start_server):
    program, *words = json.loads(the("HEALTHCHECK").split("CMD", 1)[1])
    assert program == "/usr/bin/monolockctl"
    server = start_server("-ops-listen", "127.0.0.1:0")
    settings = {"MONOLOCK_OPS_LISTEN_ADDRESS": address_text(server.ops_address)}
    assert ctl(*words, env=settings).returncode == 0
    server.stop()
    assert ctl(*words, env=settings).returncode != 0


def test_what_the_image_needs_is_not_left_out_of_its_context():
    root = DEPLOY.parent
    ignored = [line for line in (root / ".containerignore").read_text().splitlines() if not line.startswith("#")]
    assert (DEPLOY / "container" / "Containerfile.dockerignore").resolve() == root / ".containerignore"
    assert {".git", "build"} <= set(ignored)
    for needed in ("src", "include", "cmake", "scripts", "CMakeLists.txt", "CMakePresets.json"):
        assert (root / needed).exists() and needed not in ignored
    assert (DEPLOY / "container" / "rootfs").stat().st_mode & stat.S_IXUSR


# --- the manifests


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_pod_asks_for_flags_and_variables_that_exist(name):
    (container,) = pod_of(name)["containers"]
    assert {each.split("=")[0] for each in container["args"]} <= flags()
    named = {each["name"] for each in container["env"]} - {"POD_NAME"}
    assert named <= variables()


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_pod_is_restricted(name):
    pod = pod_of(name)
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
    assert pod["securityContext"].items() >= {
        "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "seccompProfile": {"type": "RuntimeDefault"}
    }.items()  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
    }  # fmt: skip
    assert "cpu" not in container["resources"]["limits"] and "memory" in container["resources"]["limits"]


def seconds(arguments, flag):
    (value,) = [each.split("=")[1] for each in arguments if each.startswith(flag + "=")]
    return int(value.removesuffix("s"))


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_pod_has_the_time_that_its_shutdown_may_take(name):
    pod = pod_of(name)
    arguments = pod["containers"][0]["args"]
    needed = seconds(arguments, "-shutdown-delay") + 2 * seconds(arguments, "-io-timeout")
    assert pod["terminationGracePeriodSeconds"] > needed


@pytest.mark.parametrize("name", MANIFESTS)
def test_ports_lead_to_the_pod(name):
    (container,) = pod_of(name)["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    settings = {each["name"]: each.get("value") for each in container["env"]}
    assert f"-listen=:{ports['locks']}" in container["args"]
    assert settings["MONOLOCK_OPS_LISTEN_ADDRESS"] == f":{ports['ops']}"
    labels = manifest(name)["StatefulSet", "monolock"]["spec"]["template"]["metadata"]["labels"]
    for (kind, _), each in manifest(name).items():
        if kind == "Service":
            assert each["spec"]["selector"].items() <= labels.items()
            assert all(port["targetPort"] in ports for port in each["spec"]["ports"])
        if kind == "NetworkPolicy":
            assert each["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
            assert {port["port"] for rule in each["spec"]["ingress"] for port in rule["ports"]} == set(ports)
        if kind == "PodDisruptionBudget":
            assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_one_server_is_one_and_two_are_told_apart():
    single, failover = (manifest(name)["StatefulSet", "monolock"]["spec"] for name in MANIFESTS)
    assert single["replicas"] == 1 and failover["replicas"] == 2
    assert ("PodDisruptionBudget", "monolock") in manifest("failover").keys() - manifest("single").keys()
    arguments = pod_of("failover")["containers"][0]["args"]
    assert "-advertise=$(POD_NAME)" in arguments and "-grant-delay=auto" in arguments
    assert not any("etcd" in each for each in pod_of("single")["containers"][0]["args"])
    assert manifest("failover")["Service", failover["serviceName"]]["spec"]["clusterIP"] == "None"


def test_the_pods_arguments_start_a_server_that_its_probes_find_well(start_server, tmp_path):
    (container,) = pod_of("single")["containers"]
    arguments = [each for each in container["args"] if not each.startswith("-listen=")]
    here = {":9090": "127.0.0.1:0", "unix:/run/monolock/admin.sock": f"unix:{tmp_path}/admin"}
    settings = {each["name"]: here[each["value"]] for each in container["env"]}
    server = start_server(*arguments, env=settings)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == "ops" and fetch(server.ops_address, asked["path"]).status == 200
    assert ctl("info", env=settings).returncode == 0


def test_the_alerts_are_those_of_prometheus():
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "monitoring.yaml").read_text(encoding="utf-8")))
    rules, monitor = sorted((each for each in documents if each), key=lambda each: each["kind"])
    assert rules["spec"] == load(DEPLOY / "prometheus" / "monolock.rules.yml")
    assert (CHART / "files" / "monolock.rules.yml").resolve() == DEPLOY / "prometheus" / "monolock.rules.yml"
    assert monitor["spec"]["jobLabel"] == "app.kubernetes.io/name"
    for name in MANIFESTS:
        found = [
            each for (kind, _), each in manifest(name).items()
            if kind == "Service" and monitor["spec"]["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
        ]  # fmt: skip
        assert len(found) == 1 and found[0]["metadata"]["labels"]["app.kubernetes.io/name"] == "monolock"
        assert "ops" in [port["name"] for port in found[0]["spec"]["ports"]]


# --- the chart


def test_the_chart_is_of_this_version():
    version = run_to_end("-version").stdout.split()[1]
    chart = load(CHART / "Chart.yaml")
    assert chart["appVersion"] == version and chart["version"] == version
    assert pod_of("single")["containers"][0]["image"].endswith(f":{version}")


def changed(values, path, value):
    *folders, last = path.split(".")
    into = values
    for each in folders:
        into = into[each]
    into[last] = value
    return values


@pytest.fixture
def judge():
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema).is_valid


def test_the_defaults_fit_the_schema_and_every_value_is_in_it(judge):
    values = load(CHART / "values.yaml")
    assert judge(values)
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert schema["properties"].keys() - {"global"} == values.keys()


RULES = {"rules": [{"identity": "a", "locks": ["b"]}]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replicas", 2), ("threads", 0), ("ioTimeoutSeconds", "5s"), ("logLevel", "loud"), ("grantDelay", "auto"),
        ("etcd.endpoints", ["etcd:2379"]), ("etcd.replicas", 1), ("etcd.clientCertificate", True),
        ("tls.clientCertificates", True), ("acl", RULES), ("image.digest", "sha256:1"), ("extraArgs", ["stray"]),
        ("networkPolicy.clients", [{"pods": {}}]), ("monitoring.rules", "yes"), ("service.port", 0),
    ],
)  # fmt: skip
def test_the_schema_refuses(judge, path, value):
    assert not judge(changed(load(CHART / "values.yaml"), path, value))


def test_the_schema_takes_what_belongs_together(judge):
    values = load(CHART / "values.yaml")
    changed(values, "etcd.endpoints", ["http://etcd:2379"])
    changed(values, "grantDelay", "auto")
    changed(values, "tls.secret", "monolock-tls")
    changed(values, "tls.clientCertificates", True)
    assert judge(changed(values, "acl", RULES))
