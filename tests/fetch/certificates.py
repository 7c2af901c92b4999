"""A certificate authority for test servers, created for each run."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority"]

_DAY = datetime.timedelta(days=1)


class Authority:
    """Signs server certificates; `ca_file` is what a client has to trust."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = self._sign(self._name, self._key, [], authority=True)
        self._count = 0
        self.ca_file = str(self._write(f"{name}.pem", self._certificate.public_bytes(serialization.Encoding.PEM)))

    def server(
        self, *names: str, ended: bool = False, self_signed: bool = False, protocols: tuple[str, ...] = ()
    ) -> ssl.SSLContext:
        """What a server for these host names or addresses needs."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_named(names[0]), key, list(names), ended=ended, self_signed=self_signed)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._bundle(key, certificate))
        if protocols:
            context.set_alpn_protocols(protocols)
        return context

    def files(self, *names: str) -> Path:
        """A file with key and certificate, for a server or a client of another program."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._bundle(key, self._sign(_named(names[0]), key, list(names)))

    def client(self, name: str, password: str) -> tuple[Path, Path]:
        """The files of a client's certificate and of its key, which is encrypted."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_named(name), key, [])
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
        public = certificate.public_bytes(serialization.Encoding.PEM)
        return self._write(f"{name}.pem", public), self._write(f"{name}.key", private)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        names: list[str],
        *,
        authority: bool = False,
        ended: bool = False,
        self_signed: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if self_signed else self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now - _DAY if ended else now + _DAY)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_general_name, names)), critical=False)
        return builder.sign(key if self_signed else self._key, hashes.SHA256())

    def _bundle(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Path:
        self._count += 1
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return self._write(f"server-{self._count}.pem", private + certificate.public_bytes(serialization.Encoding.PEM))

    def _write(self, name: str, data: bytes) -> Path:
        path = self._folder / name
        path.write_bytes(data)
        return path


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
