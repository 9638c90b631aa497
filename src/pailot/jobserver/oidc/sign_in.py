"""A sign-in from its begin to its end: what the browser carries, and what a program or page is given at last.

The browser goes to the provider with a *state*, sealed by this server: nonce, PKCE verifier and what is wanted. A cookie ties the
state to that browser. What comes back is a *grant*: it works once, within a minute, and only together with the verifier that the
page or the command made and kept. So no link of a stranger logs a user in, and no grant that is seen on its way is of use.
"""

from __future__ import annotations

import hmac
import json
import re
import threading
from secrets import token_urlsafe
from urllib.parse import urlencode, urlsplit

from cryptography.fernet import Fernet, InvalidToken

from ...client.loopback import is_loopback
from ...client.pkce import CHALLENGE, challenge_of, new_verifier, proves
from ...store.server.tokens import BadToken, digest
from ...values import Value
from ..errors import BadRequest
from .errors import SignInRefused
from .id_tokens import check_id_token
from .identities import person_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..accounts import Account
    from .configuration import SignOnSettings
    from .identities import Directory
    from .provider import Provider

STATE_SECONDS = 600
"""From the begin of a sign-in to its return."""
GRANT_SECONDS = 60.0
MAX_GRANTS = 1000
MAX_USED = 10_000
MAX_TEXT = 2000
PAGE, COMMAND, OPENPAI = "page", "command", "openpai"
_CLIENT_STATE = re.compile(r"[A-Za-z0-9_-]{0,128}")


class Wish(Value):
    """What a sign-in is for."""

    kind: str
    challenge: str = ""
    to: str = ""
    """Where the browser goes at the end; empty: the page shows what to do."""
    state: str = ""
    next: str = "/jobs"
    """The view of the page, or what a program of OpenPAI calls `from`."""


class Begun(Value):
    """Where the browser goes now, and the secret that it keeps as a cookie."""

    address: str
    cookie: str

    def __repr__(self) -> str:
        return "Begun()"


class Arrived(Value):
    """A sign-in that has succeeded: for what, and whose it is."""

    wish: Wish
    account: Account


class SignIn:
    """Sign-ins of one server. What waits for the network is called from a thread."""

    def __init__(self, settings: SignOnSettings, provider: Provider, directory: Directory, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.provider = provider
        self._directory = directory
        self._clock = clock
        self._seal = Fernet(Fernet.generate_key())
        self._lock = threading.Lock()
        self._used: dict[str, float] = {}
        self._grants: dict[str, tuple[float, str, str]] = {}
        """By the digest of the grant: until when, the challenge, the user."""

    def wish(self, query: Mapping[str, str]) -> Wish:
        """Return what the query of a sign-in asks for. Raises BadRequest, for each address that is not allowed above all."""
        challenge, to = query.get("challenge", ""), query.get("redirect_uri", "")
        state, came_from = query.get("state", ""), query.get("from", "")
        if challenge and not CHALLENGE.fullmatch(challenge):
            raise BadRequest("'challenge' should be the SHA-256 of a verifier, as 43 characters of base64url")
        if not _CLIENT_STATE.fullmatch(state):
            raise BadRequest("'state' has letters, digits, '-' and '_', at most 128")
        if len(to) > MAX_TEXT or len(came_from) > MAX_TEXT:
            raise BadRequest(f"an address has at most {MAX_TEXT} characters")
        if to in self.settings.redirects:
            return Wish(OPENPAI, to=to, next=came_from)
        if to and not (challenge and _is_own_machine(to)):
            raise BadRequest("'redirect_uri' is not allowed here; the setting oidc_redirects names those that are")
        if not challenge:
            return Wish("")
        if to or query.get("show", ""):
            return Wish(COMMAND, challenge, to, state)
        return Wish(PAGE, challenge, next=came_from if is_local_path(came_from) else "/jobs")

    def begin(self, wish: Wish, redirect_uri: str) -> Begun:
        """Return where the browser is to go. Raises ProviderUnavailable."""
        metadata = self.provider.metadata()
        nonce, verifier, cookie = token_urlsafe(24), new_verifier(), token_urlsafe(24)
        kept = {"nonce": nonce, "verifier": verifier, "cookie": digest(cookie), "back": redirect_uri, "wish": _wish_json(wish)}
        state = self._seal.encrypt_at_time(json.dumps(kept).encode(), int(self._clock())).decode()
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self.settings.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in metadata.authorization else "?"
        return Begun(f"{metadata.authorization}{joint}{urlencode(query)}", cookie)

    def opened(self, state: str, cookie: str) -> tuple[Wish, Mapping[str, Any]]:
        """Return what a state was made for, once. Raises SignInRefused: forged, old, used, or of another browser."""
        now = self._clock()
        try:
            kept = json.loads(self._seal.decrypt_at_time(state.encode(), STATE_SECONDS, int(now)))
        except (InvalidToken, ValueError):
            raise SignInRefused("the state of the sign-in was not made here, or is too old") from None
        if not cookie or not hmac.compare_digest(kept["cookie"], digest(cookie)):
            raise SignInRefused("the sign-in was begun in another browser")
        mark = digest(state)
        with self._lock:
            self._used = {key: until for key, until in self._used.items() if until > now}
            if mark in self._used:
                raise SignInRefused("this sign-in was used before")
            if len(self._used) >= MAX_USED:
                raise SignInRefused("too many sign-ins at once")
            self._used[mark] = now + 2 * STATE_SECONDS
        return Wish(**kept["wish"]), kept

    def finish(self, wish: Wish, kept: Mapping[str, Any], code: str, issuer: str = "") -> Arrived:
        """Return whose sign-in it was. `issuer` is the `iss` of the return, if there is one (RFC 9207).

        Raises SignInRefused, ProviderUnavailable.
        """
        settings = self.settings
        if issuer and issuer != settings.issuer:
            raise SignInRefused("the code comes from another issuer")
        if not code or len(code) > MAX_TEXT:
            raise SignInRefused("the provider sent no code")
        granted = self.provider.exchange(code, kept["verifier"], kept["back"])
        claims = check_id_token(
            granted.id_token,
            self.provider.keys(),
            issuer=settings.issuer,
            client_id=settings.client_id,
            nonce=kept["nonce"],
        )
        needed = {settings.username_claim, *((settings.groups_claim,) if self._needs_groups() else ())}
        if not needed <= claims.keys():
            more = self.provider.user_info(granted.access_token)
            if more and more.get("sub") != claims["sub"]:
                raise SignInRefused("the provider told of another user than the one who signed in")
            claims = {**more, **claims}
        return Arrived(wish, self._directory.admit(person_of(claims, settings)))

    def grant(self, username: str, challenge: str) -> str:
        """Return a grant for a user; it works once, with the verifier of the challenge."""
        now, made = self._clock(), token_urlsafe(24)
        with self._lock:
            self._grants = {key: each for key, each in self._grants.items() if each[0] > now}
            if len(self._grants) >= MAX_GRANTS:
                self._grants.pop(next(iter(self._grants)))
            self._grants[digest(made)] = now + GRANT_SECONDS, challenge, username
        return made

    def redeem(self, grant: str, verifier: str) -> str:
        """Return the user of a grant. Raises BadToken; a grant that is tried with a wrong verifier is gone."""
        with self._lock:
            until, challenge, username = self._grants.pop(digest(grant), (0.0, "", ""))
        if until <= self._clock() or not proves(verifier, challenge):
            raise BadToken("this sign-in was used before, is older than a minute, or was begun elsewhere; sign in again")
        return username

    def _needs_groups(self) -> bool:
        return self.settings.manages_groups or bool(self.settings.allowed_groups)


def is_local_path(path: str) -> bool:
    """Whether a path leads to the page itself: no other host, in whatever spelling browsers understand."""
    return path[:1] == "/" and path[1:2] not in ("/", "\\") and path.isprintable() and "\\" not in path


def _is_own_machine(address: str) -> bool:
    """Whether an address is one of a program beside the browser, as RFC 8252 has it."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    plain = address.isascii() and address.isprintable() and not any(each in address for each in "\\@?#")
    return bool(plain and parts.scheme == "http" and parts.hostname and is_loopback(parts.hostname) and port)


def _wish_json(wish: Wish) -> dict[str, str]:
    return {"kind": wish.kind, "challenge": wish.challenge, "to": wish.to, "state": wish.state, "next": wish.next}
