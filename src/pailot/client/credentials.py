"""Who is logged in where: one file that only its owner can read."""

from __future__ import annotations

import os

from ..errors import PailotError
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NONE = "none"
"""As a server's name: look at local runs."""


class Login(Value):
    """A server and what is needed to use it; the token is empty without a login."""

    server: str
    token: str = ""
    user: str = ""

    def __repr__(self) -> str:
        return f"Login(server={self.server!r}, user={self.user!r})"  # never the token


class BadCredentials(PailotError):
    """The file of logins cannot be used."""


def normal(server: str) -> str:
    """An address as it is remembered: 'host:9186' becomes 'http://host:9186', without a slash at its end."""
    server = server.strip()
    server = server.rstrip("/") if not server.endswith("://") else server
    if "://" not in server:
        server = f"http://{server}"
    for ending in ("/api/v2", "/api/v1"):
        server = server.removesuffix(ending)
    return server


def chosen(option: str | None, environment: Mapping[str, str] | None = None) -> Login | None:
    """The server to use: the option, then `PAILOT_SERVER`, then the last login; None for local runs."""
    environment = os.environ if environment is None else environment
    wanted = option or environment.get("PAILOT_SERVER") or ""
    if wanted.lower() == NONE:
        return None
    known = _read(environment)
    server = normal(wanted) if wanted else known.get("current") or ""
    if not server:
        return None
    kept = known.get("servers", {}).get(server) or {}
    token = environment.get("PAILOT_TOKEN", "").strip() or kept.get("token") or ""
    return Login(server, token, "" if environment.get("PAILOT_TOKEN") else kept.get("user") or "")


def remember(login: Login, environment: Mapping[str, str] | None = None) -> str:
    """Keep a login and make its server the current one; return the path of the file."""
    environment = os.environ if environment is None else environment
    known = _read(environment)
    servers = dict(known.get("servers", {}))
    servers[login.server] = {"token": login.token, "user": login.user}
    return _write({"current": login.server, "servers": servers}, environment)


def forget(server: str | None, environment: Mapping[str, str] | None = None) -> Login | None:
    """Drop a login (the current one) and return it."""
    environment = os.environ if environment is None else environment
    known = _read(environment)
    servers = dict(known.get("servers", {}))
    server = normal(server) if server else known.get("current") or ""
    kept = servers.pop(server, None)
    current = known.get("current")
    if kept is not None or current == server:
        _write({"current": None if current == server else current, "servers": servers}, environment)
    return Login(server, kept["token"], kept.get("user", "")) if kept else None


def path(environment: Mapping[str, str] | None = None) -> str:
    """Where logins are kept."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "pailot", "credentials.json")


def _read(environment: Mapping[str, str]) -> dict[str, Any]:
    file = path(environment)
    try:
        with open(file, encoding="utf-8") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            text = stream.read()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadCredentials(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if mode & 0o077:
        raise BadCredentials(f"{file} can be read by others; make it yours alone: chmod 600 {file}")
    import json

    try:
        known = json.loads(text)
        servers = known.get("servers", {})
        if not all(isinstance(each["token"], str) for each in servers.values()):
            raise ValueError
    except (ValueError, AttributeError, TypeError, KeyError):
        raise BadCredentials(f"{file} is damaged; remove it and log in again") from None
    return known  # type: ignore[no-any-return]  # JSON, checked above


def _write(known: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    import json

    file = path(environment)
    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    fresh = f"{file}.{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:
        json.dump(known, stream, indent=2)
        stream.write("\n")
        stream.flush()
        os.fsync(descriptor)
    os.replace(fresh, file)
    return file
