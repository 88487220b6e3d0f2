"""The files that a server over TLS reads, and the clients that may connect to it."""

import json
import os
import pathlib

from .tls import TlsConnection, client_context

_ANYBODY = object()


class TlsFiles:
    """Certificate, key, client CA and rules in a folder of their own. A test replaces them while the
    server runs, each at once, as `mv` does.

    mutual: clients must have a certificate of the authority; the usual client has one of the name
    "client". rules: the ACL as Python data, or a text, right or wrong.
    """

    def __init__(self, folder, authority, *, mutual=False, rules=None, credentials=None, client_authorities=()):
        self.folder = pathlib.Path(folder)
        self.authority = authority
        self.certificate = self.folder / "server.pem"
        self.key = self.folder / "server.key"
        self.client_ca = self.folder / "client-ca.pem" if mutual or rules is not None else None
        self.acl = self.folder / "acl.json" if rules is not None else None
        self.client = authority.issue_client("client") if self.client_ca else None
        self._contexts = {}
        self._named = {}
        self.serve(credentials or authority.issue_server())
        if self.client_ca:
            self.trust(authority, *client_authorities)
        if self.acl:
            self.permit(rules)

    def flags(self):
        words = ["-tls-cert", str(self.certificate), "-tls-key", str(self.key)]
        if self.client_ca:
            words += ["-tls-client-ca", str(self.client_ca)]
        if self.acl:
            words += ["-acl-file", str(self.acl)]
        return words

    # --- what an operator does

    def replace(self, path, content):
        """At once, so that no reader sees half of it. None: the file is gone."""
        if content is None:
            path.unlink()
            return
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(fresh, path)

    def serve(self, credentials):
        self.replace(self.certificate, credentials.certificate.read_bytes())
        self.replace(self.key, credentials.key.read_bytes())

    def trust(self, *authorities):
        """As issuers of client certificates."""
        self.replace(self.client_ca, b"".join(authority.pem for authority in authorities))

    def permit(self, rules):
        """Pairs of an identity and its locks, or the text of the file."""
        if not isinstance(rules, (str, bytes)):
            rules = json.dumps({"rules": [{"identity": identity, "locks": locks} for identity, locks in rules]})
        self.replace(self.acl, rules)

    # --- clients

    def context(self, credentials=_ANYBODY, **wishes):
        """Trusts the server; shows the usual client's certificate unless told otherwise."""
        if credentials is _ANYBODY:
            credentials = self.client
        key = (credentials, *sorted(wishes.items()))
        if key not in self._contexts:
            self._contexts[key] = client_context(self.authority, credentials, **wishes)
        return self._contexts[key]

    def named(self, name):
        """Credentials of a client of that Common Name, always the same ones."""
        if name not in self._named:
            self._named[name] = self.authority.issue_client(name)
        return self._named[name]

    def connect(self, address, *, context=None, credentials=_ANYBODY, who=None, version=None, **options):
        """who: the client of that name. version: only this one of TLS."""
        if who is not None:
            credentials = self.named(who)
        if context is None:
            context = self.context(credentials, **({} if version is None else {"version": version}))
        return TlsConnection(address, context, **options)
