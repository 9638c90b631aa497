"""The authority of a cluster, and a kubeconfig for each part that speaks to its API."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def new_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """A private key, written where this user alone can read it."""
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.TraditionalOpenSSL  # the one that the API server takes for accounts, too
    file.touch(mode=0o600)
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return key


class Authority:
    """Signs certificates into one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = new_key(folder / "ca.key")
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pailot test authority")])
        self._write("ca", self._builder(self.name, self.key).add_extension(x509.BasicConstraints(True, None), critical=True))

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self.name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=365))
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return builder.add_extension(authority, critical=False).add_extension(own, critical=False)

    def _write(self, file: str, builder: x509.CertificateBuilder) -> None:
        made = builder.sign(self.key, hashes.SHA256())
        (self.folder / f"{file}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def issue(self, file: str, name: str, group: str = "", names: tuple[str, ...] = ()) -> None:
        """Write `file`.crt and `file`.key, for a server of these names and for a client."""
        key = new_key(self.folder / f"{file}.key")
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
        builder = self._builder(x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usage, critical=False)
        if names:
            others = [x509.IPAddress(ip_address(each)) if each[0].isdigit() else x509.DNSName(each) for each in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
        self._write(file, builder)

    def encoded(self, file: str) -> str:
        return b64encode((self.folder / file).read_bytes()).decode()

    def kubeconfig(self, file: Path, server: str, certificate: str) -> None:
        """Write a kubeconfig that logs in with one of the certificates."""
        cluster = {"server": server, "certificate-authority-data": self.encoded("ca.crt")}
        user = {
            "client-certificate-data": self.encoded(f"{certificate}.crt"),
            "client-key-data": self.encoded(f"{certificate}.key"),
        }
        found = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": user}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        }
        file.touch(mode=0o600)
        file.write_text(json.dumps(found))
