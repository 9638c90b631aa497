"""Connections to a cluster's API: TLS with the cluster's own authority and name, a client certificate, a proxy."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from base64 import b64encode
from http.client import HTTPConnection  # noqa: TID253  # loaded only to speak to a cluster
from urllib.parse import urlsplit

from .login_error import LoginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .access import Access, Proxy

SOCKS_REFUSALS = ("", "general failure", "not allowed", "network unreachable", "host unreachable", "refused", "expired")


class ApiConnection(HTTPConnection):
    """A connection that is open already, and whose requests carry the log-in and the prefix of the address."""

    auto_open = 0  # a closed one stays closed: a new one is made with a log-in that is valid then

    def __init__(self, access: Access, way: socket.socket, timeout: float) -> None:
        parts = urlsplit(access.server)
        self.default_port = 443 if parts.scheme == "https" else 80
        super().__init__(parts.hostname or "", parts.port, timeout=timeout)
        self.access, self.prefix, self.sock = access, parts.path.rstrip("/"), way

    def putrequest(self, method: str, url: str, *options: Any, **named: Any) -> None:
        super().putrequest(method, self.prefix + url, *options, **named)

    def endheaders(self, *options: Any, **named: Any) -> None:
        for name, value in (*self.access.login.headers(), *self.access.identity):
            self.putheader(name, value)
        super().endheaders(*options, **named)


def connect(access: Access, timeout: float) -> ApiConnection:
    """Return an open connection to the API."""
    parts = urlsplit(access.server)
    host, secure = parts.hostname or "", parts.scheme == "https"
    context = tls_context(access) if secure else None
    way = _way(access.proxy, host, parts.port or (443 if secure else 80), timeout)
    try:
        way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            way = context.wrap_socket(way, server_hostname=access.server_name or host)
    except BaseException:
        way.close()
        raise
    return ApiConnection(access, way, timeout)


def tls_context(access: Access) -> ssl.SSLContext:
    """Return what TLS needs to know; certificates that do not parse are a LoginError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.authority:
        try:
            context.load_verify_locations(cadata=access.authority.read())
        except (ssl.SSLError, ValueError):
            raise LoginError(f"the certificate authority of {access.source} is no PEM certificate") from None
    else:
        context.load_default_certs()
    shown = access.login.certificate()
    if shown is not None:
        _load_certificate(context, *shown)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """OpenSSL reads a key from a file only: one in memory, or one that this user alone may read."""
    if hasattr(os, "memfd_create"):
        opened = os.memfd_create("certificate")
        path = f"/proc/self/fd/{opened}"
    else:
        opened, path = tempfile.mkstemp(prefix="pailot-")
    try:
        os.write(opened, f"{certificate.strip()}\n{key.strip()}\n".encode())
        context.load_cert_chain(path, password=lambda: b"")  # an encrypted key is refused; OpenSSL would ask the terminal
    except ssl.SSLError:
        raise LoginError("the client certificate and its key are no PEM texts that belong together") from None
    finally:
        os.close(opened)
        if not path.startswith("/proc/"):
            os.unlink(path)


def _way(proxy: Proxy | None, host: str, port: int, timeout: float) -> socket.socket:
    """Return a connected socket: straight to the API, or through the proxy."""
    if proxy is None:
        return socket.create_connection((host, port), timeout)
    way = socket.create_connection((proxy.host, proxy.port), timeout)
    try:
        if proxy.scheme == "socks5":
            _through_socks(way, proxy, host, port)
        else:
            _through_http(way, proxy, host, port)
    except BaseException:
        way.close()
        raise
    return way


def _through_http(way: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.user:
        known = b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {known}")
    way.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to TLS
        more = way.recv(1)
        if not more or len(head) > 65536:
            raise OSError(f"the proxy {proxy} closed the connection")
        head += more
    words = head.split(None, 2)
    if len(words) < 2 or words[1] != b"200":
        status = words[1].decode("latin-1")[:3] if len(words) > 1 else "?"
        raise OSError(f"the proxy {proxy} refuses the way to {target} (status {status})")


def _through_socks(way: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """SOCKS 5 (RFC 1928, RFC 1929); the proxy looks the name up."""
    way.sendall(b"\x05\x02\x00\x02" if proxy.user else b"\x05\x01\x00")
    version, method = _exactly(way, 2, proxy)
    if version == 5 and method == 2 and proxy.user:
        user, password = proxy.user.encode(), proxy.password.encode()
        way.sendall(b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
        if _exactly(way, 2, proxy)[1] != 0:
            raise OSError(f"the proxy {proxy} does not accept its user and password")
    elif (version, method) != (5, 0):
        raise OSError(f"the proxy {proxy} does not speak SOCKS 5, or asks for a user and a password")
    name = host.encode("idna")
    way.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
    _version, status, _reserved, kind = _exactly(way, 4, proxy)
    if status:
        why = SOCKS_REFUSALS[status] if status < len(SOCKS_REFUSALS) else f"status {status}"
        raise OSError(f"the proxy {proxy} cannot reach {host}:{port}: {why}")
    _exactly(way, ({1: 4, 4: 16}.get(kind) or _exactly(way, 1, proxy)[0]) + 2, proxy)


def _exactly(way: socket.socket, count: int, proxy: Proxy) -> bytes:
    found = b""
    while len(found) < count:
        more = way.recv(count - len(found))
        if not more:
            raise OSError(f"the proxy {proxy} closed the connection")
        found += more
    return found
