"""A real HTTP proxy that asks for a password, and a certificate for servers behind it."""

from __future__ import annotations

import select
import socket
import ssl
import subprocess
import threading
from base64 import b64encode
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

HOST = "pai.test"
"""A name that nobody but the proxy can resolve."""


def make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """The certificate of HOST and of this machine, and what a server needs of it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={HOST} -addext subjectAltName=DNS:{HOST},IP:127.0.0.1"
    subprocess.run([*words.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


class WebProxy:
    """Leads every name to one port of this machine. `seen` has the heads that it was sent, `user` who may use it."""

    def __init__(self, port: int, user: str = "") -> None:
        self.to, self.seen = port, list[str]()
        self.wanted = f"basic {b64encode(user.encode()).decode()}".lower() if user else ""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        threads = []
        while True:
            try:
                line, _ = self._listener.accept()
            except OSError:
                break
            threads.append(threading.Thread(target=self._lead, args=(line,)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _lead(self, line: socket.socket) -> None:
        with line:
            head, data = "", b""
            while b"\r\n\r\n" not in data:
                piece = line.recv(65536)
                if not piece:
                    return
                data += piece
            raw, _, rest = data.partition(b"\r\n\r\n")
            head = raw.decode("latin-1")
            self.seen.append(head)
            first, *fields = head.split("\r\n")
            given = next((each.partition(":")[2].strip() for each in fields if each.lower().startswith("proxy-auth")), "")
            if self.wanted and given.lower() != self.wanted:
                line.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            method, target, version = first.split(" ")
            with socket.create_connection(("127.0.0.1", self.to)) as server:
                if method == "CONNECT":
                    line.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    parts = urlsplit(target)
                    path = parts.path + (f"?{parts.query}" if parts.query else "")
                    kept = [each for each in fields if not each.lower().startswith("proxy-")]
                    server.sendall("\r\n".join([f"{method} {path} {version}", *kept, "", ""]).encode("latin-1"))
                server.sendall(rest)
                self._exchange(line, server)

    def _exchange(self, one: socket.socket, other: socket.socket) -> None:
        while True:
            for source in select.select([one, other], [], [])[0]:
                try:
                    piece = source.recv(65536)
                    if not piece:
                        return
                    (other if source is one else one).sendall(piece)
                except OSError:
                    return
