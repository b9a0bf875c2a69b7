"""TLS under a switch's connection: contexts from files that may be replaced, and a layer without a socket."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from capstan_client.errors import CapstanError
from controller.openflow.errors import PeerError
from controller.process.server_tls import CertificateError, server_context, why_not

LOG: Final = logging.getLogger(__name__)
_RECORD_BYTES: Final = 1 << 14
"""The most that a record carries (RFC 8446, section 5.1)."""


class SwitchTlsError(CapstanError, ValueError):
    """Certificate, key or authority cannot be used; the text says which file, why and what to do."""


@dataclass(frozen=True, slots=True)
class SwitchTls:
    """PEM files: our certificate with those between it and its authority, its key, and the authorities of switches."""

    certificate: Path
    key: Path
    authority: Path


class SwitchTlsContexts:
    """The context of the files as they are now: they may be replaced while connections stand. Raises SwitchTlsError.

    Connections that stand go on with what they have agreed; new ones get what the files say. Files that cannot be used
    are logged, and the context before them stays.
    """

    def __init__(self, files: SwitchTls) -> None:
        self._files = files
        self._version = self._version_of_files()
        self._context = _context(files)

    def current(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        version = self._version_of_files()
        if version != self._version:
            self._version = version
            try:
                self._context = _context(self._files)
                LOG.info(
                    "TLS for switches: %s and %s are read anew",
                    self._files.certificate,
                    self._files.authority,
                )
            except SwitchTlsError as error:
                LOG.error("TLS for switches goes on with the files before: %s", error)
        return self._context

    def _version_of_files(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_version, (self._files.certificate, self._files.key, self._files.authority)))


class TlsLayer:
    """The server's side of one connection: ciphertext and clear text, in and out. Raises PeerError.

    What is to be sent before the handshake is over waits for its end.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._waiting = bytearray()
        self.established = False
        """Whether the handshake is over, and the switch's certificate is one of our authorities'."""
        self.closed = False
        """Whether the switch has said that nothing more comes."""

    @property
    def peer_name(self) -> str:
        """Return the common name in the switch's certificate, "" before the handshake is over or where there is
        none."""
        certificate = self._tls.getpeercert() if self.established else None
        subject = cast("tuple[tuple[tuple[str, str], ...], ...]", (certificate or {}).get("subject", ()))
        names = [value for relative in subject for name, value in relative if name == "commonName"]
        return names[-1] if names else ""

    def receive(self, data: bytes) -> bytes:
        """Take what came from the wire; return what it says in clear."""
        self._incoming.write(data)
        clear = bytearray()
        try:
            if not self.established:
                self._tls.do_handshake()
                self.established = True
                self._send_waiting()
            while chunk := self._tls.read(_RECORD_BYTES):
                clear += chunk
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.closed = True
        except ssl.SSLError as error:
            raise PeerError(_reason(error)) from None
        return bytes(clear)

    def send(self, clear: bytes) -> None:
        """Have *clear* sent: `data_to_send` gives it as the wire wants it."""
        self._waiting += clear
        if self.established:
            self._send_waiting()

    def data_to_send(self) -> bytes:
        """Return the bytes for the wire, once."""
        return self._outgoing.read()

    def _send_waiting(self) -> None:
        if self._waiting:
            self._tls.write(self._waiting)  # into memory, where there is room for all of it
            self._waiting.clear()


def _context(files: SwitchTls) -> ssl.SSLContext:
    try:
        context = server_context(files.certificate, files.key)
    except CertificateError as error:
        raise SwitchTlsError(str(error)) from None
    context.verify_mode = ssl.CERT_REQUIRED
    # No session may be resumed: its certificate would not be looked at again.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    try:
        context.load_verify_locations(files.authority)
    except (OSError, ssl.SSLError) as error:
        raise SwitchTlsError(
            f"authority {files.authority} cannot be used: {why_not(error)}; give the certificates of the authorities "
            "that sign switches' certificates as a PEM file"
        ) from None
    return context


def _reason(error: ssl.SSLError) -> str:
    """Return why a handshake failed, with what to look at."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    match error.reason:
        case "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "it shows no certificate; give it one (ovs-vsctl set-ssl)"
        case "WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "UNKNOWN_PROTOCOL":
            return "it does not speak TLS; connect it by ssl:ADDRESS:PORT"
        case reason:
            return f"TLS: {(reason or str(error)).replace('_', ' ').lower()}"


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
