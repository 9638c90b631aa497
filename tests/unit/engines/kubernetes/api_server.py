"""A small HTTPS server with an authority of its own. It remembers what each request showed, and may refuse tokens."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        builder = self._builder(self.name, self.key).add_extension(x509.BasicConstraints(True, None), critical=True)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self.certificate = builder.add_extension(usage, critical=True).sign(self.key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )

    def issue(self, name: str, *alternatives: str) -> tuple[str, str]:
        """Return a certificate and its key as PEM texts."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        names: list[x509.GeneralName] = [
            x509.IPAddress(ip_address(each)) if each[0].isdigit() else x509.DNSName(each) for each in alternatives
        ]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        made = builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        return made, secret


class ApiServer:
    """Takes every request; returns 401 for tokens in `refused`."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.authority = Authority()
        self.requests: list[dict[str, Any]] = []
        self.refused: set[str] = set()
        certificate, key = self.authority.issue("api", *(names or ("127.0.0.1",)))
        pair = folder / "server.pem"
        pair.write_text(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        context.load_verify_locations(cadata=self.authority.pem)
        context.verify_mode = ssl.CERT_OPTIONAL
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                shown = self.connection.getpeercert()
                names = {key: value for part in (shown or {}).get("subject", ()) for key, value in part}
                token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
                outer.requests.append(
                    {"path": self.path, "headers": self.headers.items(), "token": token, "client": names.get("commonName", "")}
                )
                body = json.dumps({"gitVersion": "v1.35.4"}).encode()
                self.send_response(401 if token in outer.refused else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def get_request(self) -> tuple[socket.socket, Any]:
                plain, address = super().get_request()
                return context.wrap_socket(plain, server_side=True), address

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients that refuse our certificate

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, user: dict[str, Any], **cluster: Any) -> str:
        """Return the text of a kubeconfig that leads here."""
        found = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority-data": b64encode(self.authority.pem.encode()).decode(),
            **cluster,
        }
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {key: value for key, value in found.items() if value is not None}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            }
        )
