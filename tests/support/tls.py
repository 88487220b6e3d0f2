"""A connection over TLS whose records and segments a test decides.

Python's ssl does the cryptography between two memory buffers; every byte that goes out passes through
here first. What the plain Connection promises holds; the end of a stream is told in more detail.
"""

import ctypes
import select
import socket
import ssl
import time

from .connection import Connection
from .protocol import Alert, Eof, Reset, Truncated
from .waiting import PATIENCE

RECORD_MAX = 16384  # bytes of plaintext
TLS_1_2 = ssl.TLSVersion.TLSv1_2
TLS_1_3 = ssl.TLSVersion.TLSv1_3


class HandshakeFailed(AssertionError):
    """`end` is how the stream ended, in the words of a connection; None if it was refused by this side."""

    def __init__(self, text, end=None):
        super().__init__(text)
        self.end = end


def client_context(authority=None, credentials=None, *, version=None, ciphers=None):
    """Trusts one authority (none: any server) and shows a certificate if there is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # a FIN is not a close_notify
    if authority is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(cadata=authority.pem.decode())
    if credentials is not None:
        context.load_cert_chain(credentials.certificate, credentials.key, _no_password)
    if ciphers is not None:
        context.set_ciphers(ciphers)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def server_context(credentials, client_authority=None, *, version=None):
    """For servers of the tests' own. With an authority clients must show a certificate of it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    context.load_cert_chain(credentials.certificate, credentials.key, _no_password)
    if client_authority is not None:
        context.load_verify_locations(cadata=client_authority.pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def _no_password():
    raise AssertionError("a key of the test's own is encrypted")


def alert_of(error):
    """The alert that the peer sent, if that is what this ssl.SSLError says."""
    reason = error.reason or ""
    if reason == "NO_RENEGOTIATION":  # a warning that OpenSSL takes as an end
        return Alert(reason)
    return Alert(reason.rpartition("ALERT_")[2]) if "ALERT_" in reason else None


class TlsConnection(Connection):
    """Shakes hands at once unless told not to, which leaves the socket connected and nothing sent."""

    def __init__(self, address, context, *, name="127.0.0.1", handshake=True, session=None, **options):
        super().__init__(address, **options)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=name if context.check_hostname else None, session=session
        )
        self._unsent = bytearray()  # ciphertext for send_available
        if handshake:
            try:
                self.handshake()
            except BaseException:
                self.sock.close()
                raise

    # --- the handshake

    def handshake(self, within=PATIENCE, send_flight=None):
        """Goes on with it until it is done on this side. send_flight(bytes) replaces the sending of each
        flight; one that keeps the last of them makes it go out with what is sent next."""
        deadline = time.monotonic() + within
        send_flight = send_flight or super().send
        while True:
            step = self.handshake_step()
            flight = self.take_sealed()
            if flight:
                send_flight(flight)
            if step is True:
                return self
            if isinstance(step, ssl.SSLError):
                raise HandshakeFailed(f"refused the server: {step}", alert_of(step))
            left = deadline - time.monotonic()
            assert left > 0, f"no handshake within {within} s"
            self._read_handshake(left)

    def handshake_step(self):
        """True when done, None when the server's answer is missing, or the error."""
        try:
            self.tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLError as error:
            return error

    def _read_handshake(self, left):
        if not select.select([self.sock], [], [], left)[0]:
            return
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            raise HandshakeFailed("reset in the handshake", Reset()) from None
        if not data:
            raise HandshakeFailed("the stream ended in the handshake", Truncated())
        self._incoming.write(data)

    def take_sealed(self):
        """What TLS wants on the wire, to be sent by the test."""
        return self._outgoing.read()

    # --- what a client does

    def seal(self, data):
        """The bytes of one record (or several, of what is longer than one), not sent."""
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view[:RECORD_MAX]) :]
        return self._outgoing.read()

    def send(self, data, within=PATIENCE):
        """In records as long as they may be."""
        return self.send_raw(self.seal(data), within)

    def send_records(self, *records):
        """Each in a record of its own, all handed to the kernel together."""
        return self.send_raw(b"".join(self.seal(record) for record in records))

    def send_raw(self, sealed, within=PATIENCE):
        """Bytes as they go over the wire."""
        return super().send(sealed, within)

    def send_available(self, data):
        """As the plain one; what is left of a record goes before anything else."""
        taken = 0
        if not self._unsent:
            data = data[: 4 * RECORD_MAX]
            self._unsent += self.seal(data)
            taken = len(data)
        sent = super().send_available(self._unsent)
        if sent is None:
            return None
        del self._unsent[:sent]
        return taken

    def send_close_notify(self):
        """And nothing more; the stream stays open."""
        try:
            self.tls.unwrap()
        except (ssl.SSLWantReadError, ssl.SSLError):  # the server's own may come later, or never
            pass
        self.send_raw(self._outgoing.read())

    def half_close(self):
        """close_notify and FIN, as a library that closes in good order does; reading goes on."""
        self.send_close_notify()
        self.fin()

    def fin(self):
        """FIN alone, as the kernel sends it for a process that died."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:  # reset meanwhile
            pass

    def close(self):
        """In good order. Without a handshake there is nothing to say."""
        if self.sock.fileno() >= 0 and self.tls.version() is not None and not self._ended:
            self.send_close_notify()
        self.sock.close()

    def vanish(self):
        """Closes without close_notify."""
        self.sock.close()

    def seal_key_update(self, *, request=True):
        """TLS 1.3: the record after which this side uses new keys, and the server too if requested."""
        self.native("SSL_key_update", int(request))
        assert self.handshake_step() is True
        return self._outgoing.read()

    def native(self, function, *arguments):
        """Calls into libssl what Python does not offer."""
        # The connection follows the object's head and one pointer (Modules/_ssl.c, PySSLSocket).
        where = id(self.tls._sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
        handle = ctypes.c_void_p.from_address(where)
        returned = getattr(ctypes.CDLL("libssl.so.3"), function)(handle, *arguments)
        assert returned == 1, f"{function}: {returned}"

    # --- what came back

    def _receive(self, timeout):
        """Whether anything new is known: bytes of the protocol or the end, not records that carry none."""
        deadline = time.monotonic() + max(0.0, timeout)
        while not self._ended:
            if self._decrypt():
                self.received_at = time.monotonic()
                return True
            if not select.select([self.sock], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                self._ended = Reset()
                self.received_at = time.monotonic()
                return True
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()
        return False

    def _decrypt(self):
        before = len(self._buffer)
        try:
            while data := self.tls.read(65536):
                self._buffer += data
            self._ended = Eof()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._ended = Eof()
        except ssl.SSLError as error:
            eof = isinstance(error, ssl.SSLEOFError) or error.reason == "UNEXPECTED_EOF_WHILE_READING"
            self._ended = Truncated() if eof else alert_of(error)
            if self._ended is None:
                raise AssertionError(f"the server sent what is no TLS: {error}") from None
        reply = self._outgoing.read()  # to a key update
        if reply:
            self.send_raw(reply)
        return self._ended is not None or len(self._buffer) > before

    def expect_alert(self, *names, within=PATIENCE):
        """A fatal alert, one of these if any is named, and no frame before it."""
        got = self.next_frame(within)
        assert isinstance(got, Alert), f"expected an alert, got {got}"
        assert not names or got.name in names, f"expected one of {names}, got {got}"
        return got.name

    def expect_fin(self, within=PATIENCE):
        """After the end of the TLS stream: the end of the one below it, in good order."""
        assert self._ended, "the TLS stream has not ended"
        assert select.select([self.sock], [], [], within)[0], f"no FIN within {within} s"
        try:
            rest = self.sock.recv(65536)
        except ConnectionResetError:
            rest = "a reset"
        assert rest == b"", f"expected FIN, got {rest}"
