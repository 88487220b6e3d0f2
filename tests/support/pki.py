"""Certificates made while a test runs: authorities and what they sign, right or deliberately odd.

Keys and signatures are python3-cryptography's. The certificates are written here, tag by tag, since a
library that makes them refuses to make most of those that a server must refuse.
"""

import base64
import datetime
import hashlib
import ipaddress
import itertools
import os
import pathlib
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

HOUR = 3600
DAY = 24 * HOUR


# --- DER, as much of it as a certificate needs


def tlv(tag, *contents):
    body = b"".join(contents)
    if len(body) < 0x80:
        return bytes([tag, len(body)]) + body
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body


def sequence(*contents):
    return tlv(0x30, *contents)


def integer(value):
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def object_identifier(dotted):
    first, second, *rest = map(int, dotted.split("."))
    body = bytearray([40 * first + second])
    for arc in rest:
        groups = [arc & 0x7F]
        while arc := arc >> 7:
            groups.insert(0, arc & 0x7F | 0x80)
        body += bytes(groups)
    return tlv(0x06, bytes(body))


def _bit_string(body, unused_bits=0):
    return tlv(0x03, bytes([unused_bits]), body)


def _time(seconds_from_now):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds_from_now)
    if moment.year < 2050:
        return tlv(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())
    return tlv(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


def _raw(text):
    return text.encode() if isinstance(text, str) else bytes(text)


# --- names

UTF8_STRING, PRINTABLE_STRING, BMP_STRING = 0x0C, 0x13, 0x1E


def common_name(text, string_type=UTF8_STRING):
    """A part of a subject. The text goes in byte for byte, whatever a CN may hold."""
    return tlv(0x31, sequence(object_identifier("2.5.4.3"), tlv(string_type, _raw(text))))


def organisation(text):
    return tlv(0x31, sequence(object_identifier("2.5.4.10"), tlv(UTF8_STRING, _raw(text))))


def email(text):
    """An alternative name, like the three below. The text goes in byte for byte."""
    return tlv(0x81, _raw(text))


def dns(text):
    return tlv(0x82, _raw(text))


def uri(text):
    return tlv(0x86, _raw(text))


def address(text):
    return tlv(0x87, ipaddress.ip_address(text).packed)


# --- extensions

_USAGES = {"server": "1.3.6.1.5.5.7.3.1", "client": "1.3.6.1.5.5.7.3.2", "code": "1.3.6.1.5.5.7.3.3"}


def _extension(dotted, value, critical=False):
    return sequence(object_identifier(dotted), tlv(0x01, b"\xff") if critical else b"", tlv(0x04, value))


def _key_identifier(key):
    return hashlib.sha256(_public_key(key)).digest()[:20]


def _issued_by(signing_key):
    """Which key signed, so that of two authorities of one name the right one is found."""
    return _extension("2.5.29.35", sequence(tlv(0x80, _key_identifier(signing_key))))


def _authority_extensions(key, signing_key, identified):
    if identified:
        yield _issued_by(signing_key)
        yield _extension("2.5.29.14", tlv(0x04, _key_identifier(key)))
    yield _extension("2.5.29.19", sequence(tlv(0x01, b"\xff")), critical=True)  # basicConstraints: CA
    yield _extension("2.5.29.15", _bit_string(b"\x86", unused_bits=1), critical=True)  # keyUsage: sign all


def _leaf_extensions(names, usages, signing_key, identified):
    if identified:
        yield _issued_by(signing_key)
    if names:
        yield _extension("2.5.29.17", sequence(*names))
    if usages:
        yield _extension("2.5.29.37", sequence(*(object_identifier(_USAGES[usage]) for usage in usages)))


# --- keys


def make_key(kind="ec"):
    if kind == "ec":
        return ec.generate_private_key(ec.SECP256R1())
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert kind == "ed25519", kind
    return ed25519.Ed25519PrivateKey.generate()


def _public_key(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def key_pem(key, *, traditional=False, password=None):
    how = serialization.PrivateFormat.TraditionalOpenSSL if traditional else serialization.PrivateFormat.PKCS8
    encryption = (
        serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, how, encryption)


def _algorithm(key):
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return sequence(object_identifier("1.2.840.10045.4.3.2"))
    if isinstance(key, rsa.RSAPrivateKey):
        return sequence(object_identifier("1.2.840.113549.1.1.11"), tlv(0x05))
    return sequence(object_identifier("1.3.101.112"))


def _sign(key, data):
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(data, ec.ECDSA(hashes.SHA256()))
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    return key.sign(data)


def _certificate_pem(*, subject, key, issuer, signing_key, extensions, starts, ends):
    to_be_signed = sequence(
        tlv(0xA0, integer(2)),  # version 3
        integer(int.from_bytes(os.urandom(8), "big") | 1),
        _algorithm(signing_key),
        issuer,
        sequence(_time(starts), _time(ends)),
        subject,
        _public_key(key),
        tlv(0xA3, sequence(*extensions)),
    )
    whole = sequence(to_be_signed, _algorithm(signing_key), _bit_string(_sign(signing_key, to_be_signed)))
    return pem("CERTIFICATE", whole)


def pem(label, der):
    text = base64.b64encode(der)
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return b"\n".join([f"-----BEGIN {label}-----".encode(), *lines, f"-----END {label}-----".encode(), b""])


# --- authorities and what they issue


@dataclass(frozen=True, eq=False)
class Credentials:
    """Two files in PEM form: the certificate (with those of intermediate authorities) and its key."""

    certificate: pathlib.Path
    key: pathlib.Path
    private_key: object

    def encrypted_key(self, traditional=False):
        """The key as a text that asks for a password."""
        return key_pem(self.private_key, traditional=traditional, password=b"secret")


class Authority:
    """Signs certificates. Its own is in the file `certificate`; all its files are below the folder.

    identified: certificates say by which of several keys of that name they were signed.
    """

    _numbers = itertools.count()

    def __init__(
        self, folder, name="test authority", *, above=None, key="ec", starts=-HOUR, ends=10 * DAY, identified=True
    ):
        self.folder = pathlib.Path(folder)
        self._identified = identified
        self._key = make_key(key)
        self._subject = sequence(common_name(name))
        signing_key = above._key if above else self._key
        self.pem = _certificate_pem(
            subject=self._subject,
            key=self._key,
            issuer=above._subject if above else self._subject,
            signing_key=signing_key,
            extensions=_authority_extensions(self._key, signing_key, identified),
            starts=starts,
            ends=ends,
        )
        self._chain = self.pem + above._chain if above else b""  # the root itself is never sent
        self.certificate = self._write("authority", self.pem)

    def _write(self, stem, text):
        path = self.folder / f"{stem}-{next(self._numbers)}.pem"
        path.write_bytes(text)
        return path

    def credentials(self):
        """Its own certificate and key, as if it were a leaf."""
        return Credentials(self.certificate, self._write("authority-key", key_pem(self._key)), self._key)

    @staticmethod
    def impostor(folder, name, leaf):
        """Signs with the key of a leaf of that Common Name, which it sends along."""
        made = Authority(folder, name)
        made._key, made._chain = leaf.private_key, leaf.certificate.read_bytes()
        return made

    def authority_below(self, name, **wishes):
        """Its certificate goes along with each leaf that it issues."""
        return Authority(self.folder, name, above=self, **wishes)

    def issue(self, *subject, names=(), usages=("server", "client"), starts=-HOUR, ends=DAY, key="ec", stem="leaf"):
        """A leaf. The subject is made of common_name() and such, the alternative names of dns() and such,
        both in the order given; a plain text stands for a Common Name."""
        private_key = make_key(key)
        parts = [common_name(part) if isinstance(part, str) else part for part in subject]
        text = _certificate_pem(
            subject=sequence(*parts),
            key=private_key,
            issuer=self._subject,
            signing_key=self._key,
            extensions=_leaf_extensions(names, usages, self._key, self._identified),
            starts=starts,
            ends=ends,
        )
        return Credentials(
            self._write(stem, text + self._chain), self._write(f"{stem}-key", key_pem(private_key)), private_key
        )

    def issue_server(self, **wishes):
        """A leaf for this machine's loopback names."""
        names = (dns("localhost"), address("127.0.0.1"), address("::1"))
        return self.issue(**{"names": names, "usages": ("server",), "stem": "server"} | wishes)

    def issue_client(self, *subject, **wishes):
        return self.issue(*subject, **{"usages": ("client",), "stem": "client"} | wishes)
