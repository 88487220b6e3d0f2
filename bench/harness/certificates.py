"""The certificates of the servers and clients under TLS, made anew for each run."""

import subprocess

from .errors import CannotMeasure

OPENSSL_CONFIG = """
[req]
distinguished_name = subject
[subject]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = IP:127.0.0.1
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:worker-1.bench.example
"""


def make_certificates(folder):
    """An authority, and by it a certificate for servers and one for clients, as small as is usual:
    authority, server and client, each .pem and .key."""
    (folder / "openssl.cnf").write_text(OPENSSL_CONFIG)
    for name in ("authority", "server", "client"):
        command = ["openssl", "req", "-x509", "-config", "openssl.cnf", "-days", "2", "-nodes"]
        command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        command += ["-subj", f"/CN={name}", "-extensions", name]
        command += ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        if name != "authority":
            command += ["-CA", "authority.pem", "-CAkey", "authority.key"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise CannotMeasure(f"cannot make certificates: {done.stderr.strip()}")
