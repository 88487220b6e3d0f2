"""The chart and the manifests, judged by helm and by the schemas of what will read them."""

import itertools
import json
import os

import pytest
import yaml

from conftest import ROOT, TOOLS, good, python_tool, run

CHART = ROOT / "deploy" / "helm" / "monolock"
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
KUBERNETES = [f"1.{minor}" for minor in range(25, 38)]
OPERATORS = ("ServiceMonitor", "PrometheusRule")

ETCD = "etcd.endpoints={https://etcd-0:2379,https://etcd-1:2379}"
CASES = {
    "defaults": (),
    "everything": (
        ETCD, "etcd.tlsSecret=etcd-tls", "etcd.clientCertificate=true", "etcd.userSecret=etcd-user", "grantDelay=auto",
        "tls.secret=monolock-tls", "tls.clientCertificates=true", "audit=true", "monitoring.serviceMonitor=true",
        "monitoring.rules=true", "monitoring.labels.release=prometheus", "priorityClassName=high", "podLabels.a=b",
        "podAnnotations.c=d", "nodeSelector.disk=ssd", "tolerations[0].operator=Exists", "extraArgs={-log-level=debug}",
        "service.annotations.e=f", "image.pullSecrets[0].name=mine", "networkPolicy.etcd[0].podSelector.matchLabels.app=etcd",
    ),
    "one over TLS": ("tls.secret=monolock-tls", "tls.clientCertificates=true", "service.annotations.e=f"),
    "no policies": ("networkPolicy.enabled=false",),
    "a digest": ("image.digest=sha256:" + "0" * 64,),
}  # fmt: skip
ACL = 'acl={"rules":[{"identity":"*","locks":["a\\u0022{{ b }}"]}]}'


def options(settings):
    return itertools.chain.from_iterable(("--set", each) for each in settings)


def template(helm, *words):
    return good(helm, "template", "monolock", CHART, "--namespace", "locks", "--kube-version", "1.31.0", *words)


def test_the_chart_passes_helms_own_linter(helm):
    good(helm, "lint", "--strict", "--kube-version", "1.31.0", CHART)


def test_the_manifests_are_what_the_chart_makes(helm, tmp_path):
    good(ROOT / "deploy/kubernetes/render", tmp_path, env=os.environ | {"PATH": f"{TOOLS}:{os.environ['PATH']}"})
    assert len(MANIFESTS) == 3
    for each in MANIFESTS:
        assert (tmp_path / each.name).read_text() == each.read_text(), "run deploy/kubernetes/render"


def faults_of(path, version):
    if not (TOOLS / "python").exists():
        pytest.skip("kubernetes-validate is not installed")
    done = python_tool("kubernetes_validate", "--strict", "-k", version, path)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def without_operators(text, path):
    documents = [each for each in yaml.safe_load_all(text) if each]
    kept = [each for each in documents if each["kind"] not in OPERATORS]
    path.write_text(yaml.safe_dump_all(kept))
    return kept, [each for each in documents if each["kind"] in OPERATORS]


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_takes_all_that_the_chart_makes(helm, version, tmp_path):
    for name, settings in CASES.items():
        extra = ("--set-json", ACL) if "tls.clientCertificates=true" in settings else ()
        kept, _ = without_operators(template(helm, *options(settings), *extra), tmp_path / "all.yaml")
        assert len(kept) >= 5
        assert faults_of(tmp_path / "all.yaml", version) == "", name
    wrong = (tmp_path / "all.yaml").read_text().replace("runAsNonRoot", "runAsNoRoot")
    (tmp_path / "wrong.yaml").write_text(wrong)
    assert "runAsNoRoot" in faults_of(tmp_path / "wrong.yaml", version)


JUDGE = """
const [path, ...files] = process.argv.slice(2);
import(path).then(async (models) => {
  const wrong = [];
  for (const each of JSON.parse(require('fs').readFileSync(0))) {
    try { new models[each.kind](each).validate(); } catch (error) { wrong.push(`${each.kind}: ${error.message}`); }
  }
  console.log(JSON.stringify(wrong));
});
"""


def operators_faults(documents, tmp_path):
    models = TOOLS / "npm/node_modules/@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/index.js"
    (tmp_path / "judge.cjs").write_text(JUDGE)
    return json.loads(good("node", tmp_path / "judge.cjs", models, input=json.dumps(documents)))


def test_the_operator_takes_what_is_for_it(helm, tmp_path):
    if not (TOOLS / "npm").exists():
        pytest.skip("the operator's schemas are not installed")
    _, found = without_operators(template(helm, *options(CASES["everything"])), tmp_path / "all.yaml")
    assert sorted(each["kind"] for each in found) == sorted(OPERATORS)
    assert operators_faults(found, tmp_path) == []
    for each in found:
        each["spec"]["groups" if each["kind"] == "PrometheusRule" else "endpoints"] = [{"port": 1}]
    assert len(operators_faults(found, tmp_path)) == 2


def test_rules_reach_the_server_as_they_were_written(helm):
    text = template(helm, *options(CASES["one over TLS"]), "--set-json", ACL)
    (rules,) = [each for each in yaml.safe_load_all(text) if each and each["kind"] == "ConfigMap"]
    assert json.loads(rules["data"]["acl.json"]) == {"rules": [{"identity": "*", "locks": ['a"{{ b }}']}]}


@pytest.mark.parametrize(
    "settings",
    [
        ("replicas=2",), ("threads=0",), ("grantDelay=auto",), ("tls.clientCertificates=true",), ("etcd.endpoints={etcd:2379}",),
        ("logLevel=loud",), (ETCD, "etcd.replicas=1"), (ETCD, "etcd.clientCertificate=true"),
    ],
    ids=str,
)  # fmt: skip
def test_helm_refuses_what_the_schema_refuses(helm, settings):
    done = run(helm, "template", "monolock", CHART, "--kube-version", "1.31.0", *options(settings))
    assert done.returncode != 0 and "schema" in done.stderr
