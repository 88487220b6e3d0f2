"""The image: built by buildah, run by podman as it is meant to be run."""

import contextlib
import json
import re
import resource
import uuid

import pytest

from conftest import ROOT, STORE, TOOLS, good, run

USER = 65532


# An engine gives containers limits that a machine may not have to give.
DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
LIMITS = ("--ulimit", f"nofile={DESCRIPTORS}:{DESCRIPTORS}", "--ulimit", "nproc=4096:4096")


def podman(*words):
    return ("podman", *STORE, "--runtime", "runc", "--cgroup-manager", "cgroupfs", *words)


@contextlib.contextmanager
def container(image, *flags, options=()):
    """One that runs with nothing but what it needs. It has a loopback of its own, and no other network."""
    name = f"monolock-{uuid.uuid4().hex[:12]}"
    good(
        *podman("run", "--detach", "--name", name, "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all"),
        "--security-opt", "no-new-privileges", "--network", "none", "--health-interval", "disable", *LIMITS, *options, image, *flags,
    )  # fmt: skip
    try:
        yield name
    finally:
        run(*podman("rm", "--force", "--time", "0", name))


def inside(name, *words):
    return run(*podman("exec", name, *words))


def log_of(name):
    done = run(*podman("logs", name))
    return done.stdout + done.stderr


def test_the_containerfile_passes_its_linter():
    program = TOOLS / "python" / "bin" / "hadolint"
    if not program.exists():
        pytest.skip("hadolint is not installed")
    assert good(program, ROOT / "deploy/container/Containerfile") == ""
    assert "DL3003" in run(program, "-", input="FROM debian:12\nRUN cd /tmp && true\n").stdout


def test_the_image_says_how_it_is_run(image):
    (found,) = json.loads(good(*podman("image", "inspect", image)))
    config = found["Config"]
    assert config["User"] == f"{USER}:{USER}" and config["StopSignal"] == "SIGTERM"
    assert config["Entrypoint"] == ["/usr/bin/monolock"] and not config.get("Cmd")
    assert config["ExposedPorts"].keys() == {"7070/tcp", "9090/tcp"}
    assert (found.get("Healthcheck") or found["HealthCheck"])["Test"] == ["CMD", "/usr/bin/monolockctl", "health"]
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["Labels"].items()}
    assert labels.items() >= {"title": "monolock", "version": "1.2.3", "revision": "abc", "licenses": "Apache-2.0"}.items()


def test_nothing_is_in_it_but_what_is_needed(image):
    listing = good(*podman("run", "--rm", "--network", "none", *LIMITS, "--entrypoint", "/usr/bin/monolockctl", image, "--version"))
    assert listing.startswith("monolockctl ")
    mount = good(*podman("image", "mount", image)).strip()
    try:
        files = good("find", mount, "-type", "f", "-printf", "%P %m\n").splitlines()
        assert {line.split()[0] for line in files if line.startswith("usr/bin/")} == {"usr/bin/monolock", "usr/bin/monolockctl"}
        others = [line for line in files if not line.startswith(("usr/bin/", "usr/lib", "usr/share/doc/", "var/lib/dpkg/status.d/"))]
        assert {line.split()[0] for line in others} == {
            "etc/group", "etc/nsswitch.conf", "etc/passwd", "etc/ssl/certs/ca-certificates.crt"
        }  # fmt: skip
        assert all(re.search(r"\.so(\.\d+)*$", line.split()[0]) for line in files if line.startswith("usr/lib"))
        assert not [line for line in files if int(line.split()[1], 8) & 0o6000], "set-id files"
        libraries = {line.split()[0].rsplit("/", 1)[1] for line in files if line.startswith("usr/lib")}
        assert {"libssl.so.3", "libc.so.6", "libcurl.so.4"} <= libraries
        described = good("sed", "-n", "s/^Package: //p", *[f"{mount}/{line.split()[0]}" for line in files if "status.d" in line])
        assert {"libc6", "libssl3", "ca-certificates"} <= set(described.split())
        trusted = good("chroot", mount, "/usr/bin/monolockctl", "--version") and good("cat", f"{mount}/etc/ssl/certs/ca-certificates.crt")
        assert trusted.count("BEGIN CERTIFICATE") > 50
    finally:
        run(*podman("image", "unmount", image))


def test_it_serves_read_only_as_nobody(image):
    with container(image, "-threads", "1") as name:
        assert inside(name, "monolockctl", "health").stdout == "ok\n"
        assert run(*podman("healthcheck", "run", name)).returncode == 0
        done = inside(name, "monolockctl", "run", "--wait", "5s", "nightly", "--", "/usr/bin/monolockctl", "--version")
        assert done.returncode == 0 and done.stdout.startswith("monolockctl "), done
        pid = good(*podman("inspect", "--format", "{{.State.Pid}}", name)).strip()
        status = dict(line.split(":\t", 1) for line in good("cat", f"/proc/{pid}/status").splitlines() if ":\t" in line)
        assert status["Uid"].split() == [str(USER)] * 4 and status["Gid"].split() == [str(USER)] * 4
        assert int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0 and status["NoNewPrivs"] == "1"
        assert inside(name, "sh", "-c", "true").returncode != 0, "a shell"


def test_a_failing_health_check_is_seen(image):
    with container(image, "-threads", "1", options=("--env", "MONOLOCK_OPS_LISTEN_ADDRESS=")) as name:
        assert run(*podman("healthcheck", "run", name)).returncode != 0


def test_a_volume_is_where_it_can_write(image):
    where = "-audit-log=/var/log/monolock/audit.log"
    with container(image, "-threads", "1", where) as name:
        assert good(*podman("wait", name)).strip() == "1"
        assert "/var/log/monolock/audit.log" in log_of(name) and "Read-only" in log_of(name)
    with container(image, "-threads", "1", where, options=("--volume", "/var/log/monolock")) as name:
        assert inside(name, "monolockctl", "run", "a", "--", "/usr/bin/monolockctl", "--version").returncode == 0
        done = inside(name, "monolockctl", "audit", "verify", "/var/log/monolock/audit.log")
        assert "1 grant" in done.stdout, done


def test_it_reloads_and_ends_in_good_order(image):
    admin = ("--volume", "/run/monolock", "--env", "MONOLOCK_ADMIN=unix:/run/monolock/admin.sock")
    with container(image, "-threads", "1", "-admin-listen=unix:/run/monolock/admin.sock", options=admin) as name:
        assert "version" in inside(name, "monolockctl", "info").stdout
        good(*podman("kill", "--signal", "HUP", name))
        assert inside(name, "monolockctl", "health").returncode == 0
        good(*podman("stop", "--time", "10", name))
        assert good(*podman("inspect", "--format", "{{.State.ExitCode}}", name)).strip() == "0"
        assert "reload" in log_of(name) and "shutting down" in log_of(name)
