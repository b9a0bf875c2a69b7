"""TLS under a switch's connection: contexts that ask for its certificate, and refusals in a switch's terms."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from capstan_client.errors import CapstanError
from controller.openflow.errors import PeerError
from controller.process import tls_layer
from controller.process.renewed_context import RenewedContext
from controller.process.server_tls import CertificateError, server_context, why_not


class SwitchTlsError(CapstanError, ValueError):
    """Certificate, key or authority cannot be used; the text says which file, why and what to do."""


@dataclass(frozen=True, slots=True)
class SwitchTls:
    """PEM files: our certificate with those between it and its authority, its key, and the authorities of switches."""

    certificate: Path
    key: Path
    authority: Path


class SwitchTlsContexts(RenewedContext):
    """The context of the files as they are now: they may be replaced while connections stand. Raises SwitchTlsError."""

    def __init__(self, files: SwitchTls) -> None:
        paths = (files.certificate, files.key, files.authority)
        super().__init__("switches", paths, lambda: _context(files))


class TlsLayer(tls_layer.TlsLayer):
    """That of a switch, which has shown a certificate of one of our authorities once it is established.

    Raises PeerError.
    """

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
        try:
            return super().receive(data)
        except tls_layer.TlsError as error:
            raise PeerError(_reason(error.cause)) from None


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
            f"authority {files.authority} cannot be used: {why_not(error)}",
            remedy="give the certificates of the authorities that sign switches' certificates as a PEM file",
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
