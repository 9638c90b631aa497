"""Connections that a server makes for a job: to addresses that were checked, and to no others.

A name is resolved once and the connection goes to the very address that was looked at; a redirect is a new connection and so
obeys the same rules. Drivers of others resolve for themselves: their endpoint is checked first, and `watch_connections` looks
at every connection that Python makes for them.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from urllib.parse import urlsplit

from ..lifecycle.waits import capped
from .addresses import NotAllowed, parse, refusal, refusal_of_ip
from .rules import BUCKETS, WEB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .addresses import Address
    from .rules import Rules

ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "OSS_ENDPOINT", "STORAGE_EMULATOR_HOST")
"""Variables of the server that say where buckets are: the administrator's word, not the job's."""
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def resolve(host: str, port: int, rules: Rules) -> list[tuple[Any, ...]]:
    """The addresses of a host, as `getaddrinfo` tells them; NotAllowed if a job may not reach one of them."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError(f"{host!r} is no name of a host") from None
    for *_, place in found:
        check_ip(str(place[0]), rules, host, port)
    return found


def check_ip(ip: str, rules: Rules, host: str = "", port: int | None = None) -> None:
    """Refuse an address that a job may not reach."""
    problem = refusal_of_ip(ip, rules, host=host, port=port, own=is_own(ip))
    if problem:
        raise NotAllowed(problem)


def is_own(ip: str) -> bool:
    """Whether an address is one of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip.partition("%")[0], 0))
    except OSError:
        return False
    return True


def check_endpoint(address: Address, rules: Rules) -> None:
    """Refuse an address whose host a job may not reach, before a driver hears of it."""
    if not rules.server:
        return
    for link in address.links:
        if link.scheme in BUCKETS or not link.host:
            continue
        try:
            resolve(link.host, link.port or 0, rules)
        except OSError:
            pass  # a name that only the driver knows, such as a name service of HDFS; its connections are looked at


def opener(rules: Rules) -> Any:
    """What opens addresses of the web for a job, instead of urllib's own; proxies of the server's environment are used."""
    import http.client
    import urllib.request as web

    def connect(connection: Any) -> socket.socket:
        problem: OSError | None = None
        host, port = connection.host, connection.port
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if _is_proxy(host) else resolve(host, port, rules)
        for family, kind, protocol, _, place in found:
            line = socket.socket(family, kind, protocol)
            try:
                line.settimeout(None if connection.timeout is None else capped(connection.timeout))
                line.connect(place)
                line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return line
            except OSError as error:
                line.close()
                problem = error
        raise problem or OSError(f"{host} has no address")

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = connect(self)
            if self._tunnel_host:  # type: ignore[attr-defined]  # as its base does
                self._tunnel()  # type: ignore[attr-defined]  # as its base does

    class Sealed(http.client.HTTPSConnection):
        def connect(self) -> None:
            self.sock = connect(self)
            tunnel: str | None = self._tunnel_host  # type: ignore[attr-defined]  # as its base does
            if tunnel:
                self._tunnel()  # type: ignore[attr-defined]  # as its base does
            self.sock = self._context.wrap_socket(self.sock, server_hostname=tunnel or self.host)  # type: ignore[attr-defined]  # as its base does

    class ForHttp(web.HTTPHandler):
        def http_open(self, request: web.Request) -> Any:
            _check_behind_proxy(request, rules)
            return self.do_open(Plain, request)

    class ForHttps(web.HTTPSHandler):
        def https_open(self, request: web.Request) -> Any:
            _check_behind_proxy(request, rules)
            return self.do_open(Sealed, request)

    made = web.OpenerDirector()
    handlers = (ForHttp, ForHttps, web.HTTPRedirectHandler, web.HTTPDefaultErrorHandler, web.HTTPErrorProcessor)
    for handler in (web.ProxyHandler(), *(each() for each in handlers)):
        made.add_handler(handler)
    return made


def _check_behind_proxy(request: Any, rules: Rules) -> None:
    """A proxy resolves names itself; what can be told of the host here is told."""
    if not request.has_proxy() and not getattr(request, "_tunnel_host", None):
        return

    host = getattr(request, "_tunnel_host", None)
    problem = refusal(parse(f"https://{host}/" if host else request.full_url), rules)
    if problem:
        raise NotAllowed(problem)


def _is_proxy(host: str) -> bool:
    return host.lower() in _hosts_of(PROXIES)


def _hosts_of(variables: tuple[str, ...]) -> set[str]:
    found = set()
    for name in variables:
        text = os.environ.get(name, "")
        try:
            found.add((urlsplit(text if "://" in text else f"http://{text}").hostname or "").lower())
        except ValueError:
            continue  # the code that uses it reports it
    return found - {""}


def watch_connections(rules: Rules) -> None:
    """From now on this process can connect to nothing that a job may not reach, whichever driver of Python's tries.

    There is no way back: for a child that does nothing else.
    """
    told: set[tuple[str, int]] = set()
    for host in _hosts_of((*ENDPOINTS, *PROXIES)):
        try:
            told |= {(str(place[0]), 0) for *_, place in socket.getaddrinfo(host, None)}
        except OSError:
            continue  # the code that uses it reports it

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "socket.connect":
            return
        line, place = arguments
        if line.family not in (socket.AF_INET, socket.AF_INET6) or line.type & 0xF == socket.SOCK_DGRAM:
            return
        if (str(place[0]), 0) not in told:
            check_ip(_number_of(str(place[0])), rules, str(place[0]), place[1])

    def _number_of(host: str) -> str:
        """What will be connected to: mostly a number already."""
        try:
            return str(ipaddress.ip_address(host.partition("%")[0]))
        except ValueError:
            return str(socket.getaddrinfo(host, None)[0][4][0])

    sys.addaudithook(look)


__all__ = ["WEB", "check_endpoint", "check_ip", "opener", "resolve", "watch_connections"]
