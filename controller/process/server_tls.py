"""The server's side of TLS, for switches and for agents: our certificate, and the least version."""

from __future__ import annotations

import ssl
from pathlib import Path

from capstan_client.errors import CapstanError


class CertificateError(CapstanError, ValueError):
    """A certificate and its key cannot be used; the text says which, why and what to do."""


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return a context of TLS 1.2 or later that shows *certificate* (PEM). Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(
            f"certificate {certificate} and key {key} cannot be used: {why_not(error)}",
            remedy="give a certificate and its key as PEM files",
        ) from None
    return context


def why_not(error: OSError) -> str:
    """Return why a PEM file cannot be used."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    return (
        "it is not a PEM file of that kind"
        if "PEM" in str(error) or "NO_START_LINE" in str(error)
        else error.reason
    )
