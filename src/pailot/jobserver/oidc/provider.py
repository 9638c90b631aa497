"""The identity provider over HTTP: what it says of itself, its keys, and the exchange of a code for an ID token.

Every request has a limit in time and size, goes to the issuer's host or one of `oidc_hosts`, and follows no redirect to another.
Keys are fetched at each sign-in: a key that the provider has withdrawn is of no use from that moment on.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from http.client import HTTPException
from urllib.parse import quote, urlencode, urlsplit

from ...client.errors import WireError
from ...client.http import Http, NotSent, words
from ...settings import BadSetting
from ...values import Value
from .configuration import check_address
from .errors import ProviderUnavailable, SignInRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from http.client import HTTPResponse
    from typing import Any

    from .configuration import SignOnSettings

REQUEST_SECONDS = 10.0
"""From the first to the last byte of one request."""
MAX_REPLY_BYTES = 1 << 20
METADATA_SECONDS = 600.0
FAILED_SECONDS = 5.0
"""A provider that cannot be reached is not asked again for this time: sign-ins that fail anyway fail at once."""
WELL_KNOWN = "/.well-known/openid-configuration"


class Metadata(Value):
    """Where the provider does what."""

    authorization: str
    token: str
    keys: str
    user_info: str
    end_session: str
    basic: bool
    """Whether the client secret is sent as a header; else it is in the form."""


class Granted(Value):
    """What a code was exchanged for."""

    id_token: str
    access_token: str

    def __repr__(self) -> str:
        return "Granted()"


class Provider:
    """One provider; may be used by several threads."""

    def __init__(self, settings: SignOnSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._hosts = {_host(settings.issuer), *settings.hosts}
        self._lock = threading.Lock()
        self._known: tuple[float, Metadata] | None = None
        self._failed: tuple[float, str] | None = None

    def metadata(self) -> Metadata:
        """Return where the provider does what, from memory for ten minutes. Raises ProviderUnavailable."""
        with self._lock:
            now = self._clock()
            if self._known is not None and now < self._known[0] + METADATA_SECONDS:
                return self._known[1]
            if self._failed is not None and now < self._failed[0] + FAILED_SECONDS:
                raise ProviderUnavailable(self._failed[1])
            try:
                found = self._metadata(self._fetch("GET", self._settings.issuer.rstrip("/") + WELL_KNOWN))
            except ProviderUnavailable as error:
                self._failed = self._clock(), str(error)
                raise
            self._known, self._failed = (now, found), None
            return found

    def keys(self) -> Mapping[str, Any]:
        """Return the keys that the provider signs with now, as a JSON Web Key Set."""
        return self._fetch("GET", self.metadata().keys)

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> Granted:
        """Return what a code is worth. Raises SignInRefused where the provider does not take it."""
        metadata, settings = self.metadata(), self._settings
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri, "code_verifier": verifier}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if settings.client_secret and metadata.basic:
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = settings.client_id
            if settings.client_secret:
                form["client_secret"] = settings.client_secret
        said = self._fetch("POST", metadata.token, urlencode(form).encode(), headers)
        id_token, access_token = said.get("id_token"), said.get("access_token", "")
        if not isinstance(id_token, str) or not isinstance(access_token, str):
            raise SignInRefused("the provider gave no ID token")
        return Granted(id_token, access_token)

    def user_info(self, access_token: str) -> Mapping[str, Any]:
        """Return the claims that the provider tells apart from the ID token; none where it tells none there."""
        place = self.metadata().user_info
        if not place or not access_token or not (access_token.isascii() and access_token.isprintable()):
            return {}
        return self._fetch("GET", place, headers={"Authorization": f"Bearer {access_token}"})

    def _metadata(self, said: Mapping[str, Any]) -> Metadata:
        if said.get("issuer") != self._settings.issuer:
            raise ProviderUnavailable("the provider says that it is another issuer than oidc_issuer")
        methods = said.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        basic = not isinstance(methods, list) or "client_secret_basic" in methods or "client_secret_post" not in methods
        return Metadata(
            self._endpoint(said, "authorization_endpoint"),
            self._endpoint(said, "token_endpoint"),
            self._endpoint(said, "jwks_uri"),
            self._endpoint(said, "userinfo_endpoint", needed=False),
            self._endpoint(said, "end_session_endpoint", needed=False),
            basic,
        )

    def _endpoint(self, said: Mapping[str, Any], name: str, *, needed: bool = True) -> str:
        address = said.get(name, "")
        if address == "" and not needed:
            return ""
        if not isinstance(address, str):
            raise ProviderUnavailable(f"the provider does not say where its {name} is")
        try:
            check_address(name, address.partition("?")[0])
        except BadSetting as error:
            raise ProviderUnavailable(f"the provider's {error}") from None
        if _host(address) not in self._hosts:
            raise ProviderUnavailable(f"the provider's {name} is on {_host(address)}; oidc_hosts names hosts that may be asked")
        return address

    def _fetch(
        self, method: str, address: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        """Return the JSON object of a reply. Raises SignInRefused where a code is not taken, else ProviderUnavailable."""
        parts = urlsplit(address)
        line = Http(f"{parts.scheme}://{parts.netloc}", timeout=REQUEST_SECONDS)
        timer = threading.Timer(REQUEST_SECONDS, line.interrupt)
        timer.daemon = True
        timer.start()
        began = time.monotonic()
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            response = line.send(method, target, body, headers)
            data = _read(response, began + REQUEST_SECONDS)
        except (WireError, NotSent, OSError, HTTPException) as error:
            why = "no reply in time" if line.was_interrupted() else str(error) if isinstance(error, WireError) else words(error)
            raise ProviderUnavailable(f"the identity provider cannot be used: {why}") from None
        finally:
            timer.cancel()
            line.close()
        if len(data) > MAX_REPLY_BYTES:
            raise ProviderUnavailable(f"the identity provider replied with more than {MAX_REPLY_BYTES} bytes")
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            said = None
        if 400 <= response.status < 500 and method == "POST":
            word = str(said.get("error", ""))[:100] if isinstance(said, dict) else ""
            raise SignInRefused(f"the provider does not take the code ({response.status} {word!r})")
        if response.status != 200 or not isinstance(said, dict):
            raise ProviderUnavailable(f"the identity provider replied with status {response.status}, and no JSON object")
        return said


def _read(response: HTTPResponse, until: float) -> bytes:
    """A reply of bounded size. A provider that sends a byte now and then is given up at the end of the time, too."""
    data = b""
    while len(data) <= MAX_REPLY_BYTES:
        piece = response.read1(65536)
        if not piece:
            return data
        if time.monotonic() > until:
            raise TimeoutError
        data += piece
    return data


def _host(address: str) -> str:
    return (urlsplit(address).hostname or "").lower()
