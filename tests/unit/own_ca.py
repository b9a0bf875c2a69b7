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


class Authority:
    """An authority of its own. ``certificate``: its own, PEM."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(f"Capstan test authority {name}")
        public = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        root = _builder(self._name, self._name, self._key)
        root = root.add_extension(x509.BasicConstraints(True, None), True)
        root = root.add_extension(_usage(signs=True), True).add_extension(public, False)
        self.certificate = directory / f"{name}.pem"
        self._write(self.certificate, root)

    def issue(self, name: str, address: str | None = None, file: str | None = None) -> tuple[Path, Path]:
        """Return the files of a certificate for *name* (and an IP address), and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _builder(_name(name), self._name, key)
        leaf = leaf.add_extension(x509.BasicConstraints(False, None), True)
        leaf = leaf.add_extension(_usage(signs=False), True)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        leaf = leaf.add_extension(issuer, False)
        if address is not None:
            addresses = [x509.IPAddress(ipaddress.ip_address(address))]
            leaf = leaf.add_extension(x509.SubjectAlternativeName(addresses), False)
        certificate, key_file = (self._directory / f"{file or name}-{kind}.pem" for kind in ("cert", "key"))
        self._write(certificate, leaf)
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, key_file

    def _write(self, path: Path, builder: x509.CertificateBuilder) -> None:
        signed = builder.sign(self._key, hashes.SHA256())
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def make_ca(directory: Path, address: str = "127.0.0.1") -> OwnCa:
    """Make an authority, and a certificate by it for the IP address *address*, as PEM files in *directory*."""
    authority = Authority(directory)
    return OwnCa(authority.certificate, *authority.issue("controller", address))


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


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
