"""Which proxy leads to a server: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in small letters or capitals."""

from __future__ import annotations

from base64 import b64encode
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from ..values import Value
from .loopback import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORT = 8080


class BadProxy(Exception):
    """A proxy that cannot be used; the text has no password in it."""


class Proxy(Value):
    """Where a proxy is, and how to make oneself known to it."""

    variable: str
    host: str
    port: int
    credentials: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self})"  # never the credentials

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"the proxy {host}:{self.port} ({self.variable})"

    def headers(self) -> dict[str, str]:
        """What a request to the proxy carries."""
        return {"Proxy-Authorization": self.credentials} if self.credentials else {}

    def refusal(self, status: int) -> str:
        """Why the proxy does not let us through, in words."""
        if status == 407 and self.credentials:
            return f"{self} does not accept the user and the password that {self.variable} has"
        if status == 407:
            return f"{self} asks for a user and a password: {self.variable}=http://USER:PASSWORD@HOST:PORT"
        return f"{self} answers with status {status}"


def proxy_for(scheme: str, host: str, port: int | None, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy for requests to a server, None where they go straight; BadProxy."""
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    forged = {"HTTP_PROXY"} if "REQUEST_METHOD" in environment else ()  # in a CGI program the client's header `Proxy` makes it
    variable = next((name for name in names if environment.get(name) and name not in forged), None)
    if variable is None or is_direct(host, port, environment.get("no_proxy") or environment.get("NO_PROXY") or ""):
        return None
    return _parsed(variable, environment[variable])


def _parsed(variable: str, value: str) -> Proxy:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
        parts = urlsplit("")
    if not host:
        raise BadProxy(f"{variable} is no address of a proxy; it looks like http://USER:PASSWORD@HOST:PORT")
    if parts.scheme.lower() != "http":
        raise BadProxy(f"{variable} names a proxy by {parts.scheme}://, which is not spoken here; one by http:// is")
    credentials = ""
    if parts.username is not None:
        known = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = "Basic " + b64encode(known.encode()).decode()
    return Proxy(variable, host, port or DEFAULT_PORT, credentials)


def is_direct(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether no proxy is asked: for this machine, and for what `NO_PROXY` names by host, domain, address or network."""
    host = host.lower().rstrip(".")
    if is_loopback(host):
        return True
    return any(_matches(entry, host, port) for entry in no_proxy.lower().replace(",", " ").split())


def _matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return _in_network(host, entry)
    name, colon, only = entry.rpartition(":")
    if colon and only.isdecimal() and (":" not in name or name.endswith("]")):
        if port != int(only):
            return False
        entry = name
    entry = entry.strip("[]").removeprefix("*").strip(".")
    return bool(entry) and (host == entry or host.endswith("." + entry))


def _in_network(host: str, entry: str) -> bool:
    try:
        return ip_address(host) in ip_network(entry.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        return False  # a name, or a network that is none
