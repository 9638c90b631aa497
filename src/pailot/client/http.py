"""Requests over one connection that is kept open; what is safe to repeat is repeated when the line breaks."""

from __future__ import annotations

import json
import os
import re
import select
import time
from urllib.parse import urljoin, urlsplit

from ..lifecycle.waits import capped
from ..values import Value
from .errors import Denied, Failing, NotFound, NotTheApi, Redirected, Refused, Unreachable, WireError
from .proxy import BadProxy, proxy_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPConnection, HTTPResponse
    from socket import socket
    from typing import IO, Any
    from urllib.parse import SplitResult

    from .proxy import Proxy

IDEMPOTENT = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS"))
RETRIES = 3
PAUSES = (0.1, 0.5, 1.5)
TIMEOUT = 60.0
CONNECT_TIMEOUT = 10.0
IDLE = 2.0
"""What must not be sent twice is not sent over a connection that was idle for longer: its end could be on its way."""
MOST_REDIRECTS = 5
_AGAIN = frozenset((502, 503, 504))
_MOVED = frozenset((301, 302, 303, 307, 308))
_PORTS = {"http": 80, "https": 443}


class Reply(Value):
    """An answer of the server, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; anything else does not come from the expected server."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise NotTheApi("the answer is not JSON: is this the address of the API?") from None

    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Http:
    """A server's address, and one connection to it. Not for several threads at once."""

    def __init__(self, server: str, token: str = "", *, timeout: float = TIMEOUT) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WireError(f"'{without_credentials(server)}' is no address of a server; it looks like http://host:9186")
        if parts.username or parts.password:
            raise WireError("an address with a password in it is not used: log in with pailot login")
        try:
            port = parts.port
        except ValueError:
            raise WireError(f"'{server}' has no valid port") from None
        self.server = server.rstrip("/")
        self.scheme, self.host, self.port, self.prefix = parts.scheme, parts.hostname, port, parts.path.rstrip("/")
        self.token = token
        self.renew: Callable[[str], str] | None = None
        """Answers a new token when the server does not accept the old one any more."""
        self.timeout = timeout
        self.retries = RETRIES
        self._interrupted = False
        self._connection: HTTPConnection | None = None
        self._seen_by: Proxy | None = None
        """The proxy that the requests of the open connection are addressed to; one that tunnels them sees none."""
        self._used = 0.0

    def request(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Reply:
        """One request; raises a WireError for everything but success."""
        from http.client import HTTPException

        repeat = method in IDEMPOTENT
        renewed = False
        turn = 0
        while True:
            last = turn >= self.retries
            try:
                response = self.send(method, path, body, headers, timeout=timeout)
                reply = Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
            except NotSent as error:
                self.close()
                if last:
                    raise self._unreachable(error.cause) from None
                self._pause(turn)
            except (OSError, HTTPException) as error:
                self.close()
                if not repeat or last or isinstance(error, TimeoutError):
                    raise self._unreachable(error) from None
                self._pause(turn)
            else:
                if response.will_close:
                    self.close()
                if reply.status < 400:
                    return reply
                if reply.status == 401 and self.renew is not None and not renewed:
                    self.token, renewed = self.renew(self.token), True
                    continue
                if last or not (reply.status == 429 or (reply.status in _AGAIN and repeat)):
                    raise refusal(reply, self.server)
                self._pause(turn, reply)
            turn += 1

    def send(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> HTTPResponse:
        """Send a request and read the head of its answer; the caller reads the rest.

        To another place of the same server a GET follows; Redirected for everything else that was moved.
        """
        target = self.prefix + path
        for _ in range(MOST_REDIRECTS + 1):
            response = self._exchange(method, target, body, headers, timeout)
            if response.status == 407 and self._seen_by is not None:
                response.read()
                raise Unreachable(f"{self.server} cannot be reached: {self._seen_by.refusal(407)}")
            if response.status not in _MOVED:
                return response
            response.read()
            target = self._moved(method, path, target, response)
        raise Redirected(f"{self.server} redirects again and again: is this the address of the API?")

    def _exchange(
        self,
        method: str,
        target: str,
        body: bytes | IO[bytes] | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> HTTPResponse:
        """One request and the head of its answer, whatever that is."""
        idle = time.monotonic() - self._used
        if self._connection is not None and ((method not in IDEMPOTENT and idle > IDLE) or _was_closed(self._connection)):
            self.close()
        self._used = time.monotonic()
        if self._connection is None:
            try:
                self._connection = self._connect()
            except (OSError, ValueError) as error:
                raise NotSent(error) from None
        connection = self._connection
        if connection.sock is not None:
            connection.sock.settimeout(capped(timeout or self.timeout))
        if body is not None and not isinstance(body, bytes):
            body.seek(0)
        if self._interrupted:
            raise NotSent(ConnectionAbortedError("interrupted"))
        sent = {"Accept": "application/json", "User-Agent": "pailot", **(headers or {})}
        if self.token:
            if not (self.token.isascii() and self.token.isprintable()):
                raise Denied("the token (PAILOT_TOKEN, or a file) is none: it has characters that no token has", 401)
            sent["Authorization"] = f"Bearer {self.token}"
        if self._seen_by is not None:
            target = f"{self._origin()}{target}"
            sent |= self._seen_by.headers()
        connection.request(method, target, body, sent)
        return connection.getresponse()

    def _moved(self, method: str, path: str, target: str, response: HTTPResponse) -> str:
        """Where to ask instead, on this server; from http to https, which is kept from then on. Redirected for other places."""
        where = response.getheader("Location") or ""
        try:
            parts = urlsplit(urljoin(f"{self._origin()}{target}", where))
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if not (where and where.isascii() and where.isprintable() and parts.scheme in _PORTS and parts.hostname):
            raise Redirected(f"{self.server} redirects (status {response.status}) without saying where to")
        here, there = (self.scheme, self.port or _PORTS[self.scheme]), (parts.scheme, port or _PORTS[parts.scheme])
        ours = parts.hostname == self.host.lower() and parts.username is None
        upgrade = (here[0], there[0]) == ("http", "https")
        if not (method in ("GET", "HEAD") and ours and (here == there or upgrade)):
            raise self._elsewhere(path, parts, port)
        if response.will_close or upgrade:
            self.close()
        if upgrade:
            self._become(path, parts, port)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def _elsewhere(self, path: str, parts: SplitResult, port: int | None) -> Redirected:
        """The one line for it: where to, and the setting that leads there."""
        origin, asked = _origin(parts.scheme, parts.hostname or "", port), path.partition("?")[0]
        base = origin + (parts.path.removesuffix(asked).rstrip("/") if parts.path.endswith(asked) else "")
        return Redirected(f"the server {self.server} redirects to {origin}{parts.path}; set PAILOT_SERVER={base}")

    def _become(self, path: str, parts: SplitResult, port: int | None) -> None:
        """What is asked next, with a token or a password in it, goes to the encrypted address at once."""
        asked = path.partition("?")[0]
        if parts.path.endswith(asked):
            self.prefix = parts.path.removesuffix(asked).rstrip("/")
        self.scheme, self.port = parts.scheme, port
        self.server = f"{self._origin()}{self.prefix}"

    def _origin(self) -> str:
        return _origin(self.scheme, self.host, self.port)

    def clone(self) -> Http:
        """The same server over a connection of its own, for what is read while other requests are made."""
        made = Http(self.server, self.token, timeout=self.timeout)
        made.retries, made.renew = self.retries, self.renew
        return made

    def interrupt(self) -> None:
        """May be called from any thread: a read on this connection fails at once, and the connection is not opened again."""
        import socket

        self._interrupted = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed already

    def was_interrupted(self) -> bool:
        return self._interrupted

    def limit(self, seconds: float) -> None:
        """How long the next read from the open connection may take."""
        if self._connection is not None and self._connection.sock is not None:
            self._connection.sock.settimeout(capped(seconds))

    def close(self) -> None:
        """Leave the connection; the next request makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def open_way(self) -> socket:
        """A new connection to the server, encrypted where the address says so; the caller uses and closes it."""
        connection = self._connect(tunnel=True)
        way: socket = connection.sock
        way.settimeout(None)
        return way

    def _connect(self, *, tunnel: bool = False) -> HTTPConnection:
        """To the server, or to the proxy: https, and whatever is to be a `tunnel`, where it sees no token."""
        from http.client import HTTPConnection, HTTPSConnection

        try:
            proxy = proxy_for(self.scheme, self.host, self.port or _PORTS[self.scheme], os.environ)
        except BadProxy as error:
            raise WireError(f"{self.server} cannot be reached: {error}") from None
        host, port = (proxy.host, proxy.port) if proxy else (self.host, self.port)
        connection: HTTPConnection
        if self.scheme == "https":
            connection = HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT, context=_trust())
            if proxy:
                connection.set_tunnel(self.host, self.port or 443, proxy.headers())
        else:
            connection = HTTPConnection(host, port, timeout=CONNECT_TIMEOUT)
            if proxy and tunnel:
                connection.set_tunnel(self.host, self.port or 80, proxy.headers())
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            if proxy is None or _of_tls(error):
                raise
            raise self._not_through(proxy, error) from None
        self._seen_by = proxy if self.scheme == "http" else None
        return connection

    def _not_through(self, proxy: Proxy, error: OSError) -> Exception:
        """What a proxy says to us is final; what it says of the server may be better the next time."""
        said = re.match(r"Tunnel connection failed: ([0-9]{3})\b", str(error))
        if said is None:
            return OSError(f"{proxy}: {words(error)}")
        status = int(said[1])
        if status < 500:
            return Unreachable(f"{self.server} cannot be reached: {proxy.refusal(status)}")
        return OSError(proxy.refusal(status))

    def _pause(self, turn: int, reply: Reply | None = None) -> None:
        asked = reply.headers.get("retry-after", "") if reply is not None else ""
        time.sleep(min(float(asked), 10.0) if asked.replace(".", "", 1).isdigit() else PAUSES[min(turn, len(PAUSES) - 1)])

    def _unreachable(self, error: BaseException) -> Unreachable:
        return Unreachable(f"{self.server} cannot be reached: {words(error)}")


class NotSent(Exception):
    """There was no connection: whatever the method, nothing has happened."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


def words(error: BaseException) -> str:
    """An error of the network as a person would say it."""
    if isinstance(error, NotSent):
        return words(error.cause)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        return _of_tls(error) or error.strerror or str(error) or type(error).__name__
    return str(error) or type(error).__name__


def _of_tls(error: OSError) -> str:
    """What a failed handshake means; nothing for other errors."""
    reason = getattr(error, "reason", None)
    if not isinstance(reason, str):
        return ""
    if reason == "CERTIFICATE_VERIFY_FAILED":
        why = getattr(error, "verify_message", "") or "it cannot be verified"
        return f"its certificate is not trusted ({why}); SSL_CERT_FILE names more that are"
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_EOF_WHILE_READING", "RECORD_LAYER_FAILURE"):
        return "it does not speak TLS; is it http:// that is meant?"
    return f"TLS fails ({reason.replace('_', ' ').lower()})"


def refusal(reply: Reply, server: str) -> Refused:
    """An answer that is no success, as an error."""
    code, message = "", ""
    try:
        body = json.loads(reply.body)
        if isinstance(body, dict):
            code, message = str(body.get("code") or ""), str(body.get("message") or "")
    except ValueError:
        pass  # a proxy's page, perhaps; the status says enough
    message = message or f"{server} answered with status {reply.status}"
    if reply.status in (401, 403):
        hint = "; pailot login logs in" if reply.status == 401 else ""
        return Denied(message.rstrip(".") + hint if hint else message, reply.status, code)
    if reply.status == 404:
        return NotFound(message, reply.status, code)
    if reply.status >= 500:
        return Failing(message, reply.status, code)
    return Refused(message, reply.status, code)


def without_credentials(address: str) -> str:
    """An address that may be shown."""
    scheme, separator, rest = address.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _was_closed(connection: HTTPConnection) -> bool:
    """Whether the server has closed a kept connection meanwhile: it can be read from, though nothing was asked."""
    if connection.sock is None:
        return True
    try:
        poller = select.poll()
        poller.register(connection.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(poller.poll(0))
    except (OSError, ValueError):
        return True


def _origin(scheme: str, host: str, port: int | None) -> str:
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}" + (f":{port}" if port else "")


def _trust() -> Any:
    """Certificates: the system's, or those of `SSL_CERT_FILE` (which OpenSSL reads by itself where it is the default)."""
    import ssl

    file = os.environ.get("SSL_CERT_FILE")
    return ssl.create_default_context(cafile=file) if file else ssl.create_default_context()
