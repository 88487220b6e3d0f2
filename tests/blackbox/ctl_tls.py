"""monolockctl with the flags of TLS, and what its end must look like."""

from ctl import ctl, run_words


def tls_words(authority=None, credentials=None, name=None):
    words = []
    if authority is not None:
        words += ["--tls-ca", str(authority.certificate)]
    if credentials is not None:
        words += ["--tls-cert", str(credentials.certificate), "--tls-key", str(credentials.key)]
    if name is not None:
        words += ["--tls-name", name]
    return words


def echo(server, *options, **more):
    """`run … echo ran` with --retry, so that what is tried again shows; at most once is what is tested."""
    return ctl(*run_words(server, "n", "echo", "ran", options=[*options, "--retry"]), **more)


def check_ran(done):
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def check_failed(done, status, *texts):
    """Nothing ran, one line says why."""
    assert (done.returncode, done.stdout) == (status, ""), done
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for text in texts:
        assert text in done.stderr, f"no {text!r} in {done.stderr!r}"
