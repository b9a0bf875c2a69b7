"""A certificate authority of a test's own, as docs/own-fabric.md makes one with openssl."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class OwnCa:
    """``authority`` is what agents are given; ``certificate`` and ``key`` what the controller is given."""

    authority: Path
    certificate: Path
    key: Path


def make_ca(directory: Path, address: str = "127.0.0.1") -> OwnCa:
    """An authority, and a certificate by it for the IP address *address*, as PEM files in *directory*."""
    directory.mkdir(parents=True, exist_ok=True)
    root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Capstan test authority")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "controller")])
    root = _builder(root_name, root_name, root_key).add_extension(x509.BasicConstraints(True, None), True)
    root = root.add_extension(_usage(signs=True), True)
    leaf = (
        _builder(name, root_name, key)
        .add_extension(x509.BasicConstraints(False, None), True)
        .add_extension(_usage(signs=False), True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), False)
    )
    root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(root_key.public_key()), False)
    ca = OwnCa(directory / "ca.pem", directory / "cert.pem", directory / "key.pem")
    for path, builder in ((ca.authority, root), (ca.certificate, leaf)):
        path.write_bytes(builder.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    ca.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return ca


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(not signs, False, False, False, False, signs, signs, False, False)
