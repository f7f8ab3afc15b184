"""The self-signed certificate of a box's HTTPS listener."""

from __future__ import annotations

import hashlib
import ipaddress
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_DAYS = 365 * 5


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key on disk.

    Attributes: certificate_file and key_file (PEM), sha256 (lower-case hex of the DER form: the value to
    pin, and the channel binding of TLS).
    """

    certificate_file: Path
    key_file: Path
    sha256: str

    @classmethod
    def load_or_create(cls, directory: Path, name: str, address: str) -> Certificate:
        """The certificate kept in directory, made when missing or when it is for another name or address.

        Args:
            name: host name of the box, subject and DNS entry.
            address: its IP address, also in the subject alternative names.
        """
        certificate_file, key_file = directory / "winrm.crt", directory / "winrm.key"
        if certificate_file.is_file() and key_file.is_file():
            known = x509.load_pem_x509_certificate(certificate_file.read_bytes())
            names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            if set(names) == set(_names(name, address)) and known.not_valid_after_utc > datetime.now(UTC):
                return cls(certificate_file, key_file, _fingerprint(known))
        directory.mkdir(parents=True, exist_ok=True)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        made = _self_signed(key, name, address)
        key_file.unlink(missing_ok=True)
        with open(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(
                key.private_bytes(
                    serialization.Encoding.PEM,
                    serialization.PrivateFormat.PKCS8,
                    serialization.NoEncryption(),
                )
            )
        certificate_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return cls(certificate_file, key_file, _fingerprint(made))


def _fingerprint(certificate: x509.Certificate) -> str:
    return hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()


def _names(name: str, address: str) -> list[x509.GeneralName]:
    return [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]


def _self_signed(key: rsa.RSAPrivateKey, name: str, address: str) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = x509.KeyUsage(True, False, True, False, False, False, False, False, False)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(_names(name, address)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(key, hashes.SHA256())
    )
