"""Sessions of the web page: an id that travels as a cookie and a page secret that travels as a header; both are needed.

A cookie alone would not do: browsers send it to every port of this host, and so to the web servers of tasks. The page secret
lies where only pages of this very origin can read it. The database holds the SHA-256 of both.
"""

from __future__ import annotations

import hmac
import threading
from secrets import token_urlsafe

from ..store.server import APPLICATION, BROWSER, SESSION, Token
from ..store.server.tokens import BadToken, digest
from ..values import Value
from .accounts import Bearer, NoSuchToken, NoSuchUser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store.server import ServerStore
    from .accounts import Account, Accounts

IDLE_SECONDS = 12 * 3600.0
"""A session that is not used for this time is over."""
LONGEST_SECONDS = 7 * 24 * 3600.0
RENEWED_SECONDS = 600.0
"""The end of a session is moved at most this often."""
CODE_SECONDS = 60.0
MOST_CODES = 1000
CACHED = 4096
ID_LETTERS = 16
"""Of a digest; enough to tell the tokens of one user apart, and useless as a token."""


class Opened(Value):
    """A new session. `id` and `page` are shown to the browser once and are not kept."""

    id: str
    page: str
    account: Account
    expires: float

    def __repr__(self) -> str:
        return f"Opened({self.account.username!r})"


class HeldLogin(Value):
    """A session or token of a user, without anything that could be used as one."""

    id: str
    kind: str
    note: str
    created: float
    expires: float | None
    current: bool = False


class Sessions:
    """The sessions of one server."""

    def __init__(self, store: ServerStore, accounts: Accounts, clock: Callable[[], float]) -> None:
        self._rows, self._accounts, self._clock = store.accounts, accounts, clock
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[int, float, Bearer]] = {}
        """By id and page secret: when it was known (generation of the accounts, second), and who it is."""
        self._codes: dict[str, tuple[float, str]] = {}

    def open(self, username: str, password: str, *, address: str = "", note: str = "") -> Opened:
        """A session for a user who knows the password. Raises WrongPassword, TooManyFailures."""
        self._accounts.check_password(username, password, address)
        return self._open(username, note)

    def code_for(self, username: str) -> str:
        """A code that opens a session of this user once, within a minute: for `pailot web`."""
        now, code = self._clock(), token_urlsafe(24)
        with self._lock:
            self._codes = {key: each for key, each in self._codes.items() if each[0] > now}
            if len(self._codes) >= MOST_CODES:
                self._codes.pop(next(iter(self._codes)))
            self._codes[digest(code)] = now + CODE_SECONDS, username
        return code

    def open_by_code(self, code: str, note: str = "") -> Opened:
        """A session for a code that was not used yet. Raises BadToken."""
        with self._lock:
            until, username = self._codes.pop(digest(code), (0.0, ""))
        if until <= self._clock():
            raise BadToken("this link was used before, or is older than a minute; run pailot web again")
        return self._open(username, note)

    def open_proved(self, username: str, note: str = "") -> Opened:
        """A session for a user who has proved otherwise who they are. Raises NoSuchUser."""
        return self._open(username, note)

    def identify(self, id: str, page: str) -> Bearer:
        """Whose session this is. Raises BadToken where id or page secret are wrong, or the session is over."""
        now, generation = self._clock(), self._accounts.generation
        known = self._known.get((id, page))
        if known is not None and known[0] == generation and now < known[1] + RENEWED_SECONDS:
            return known[2]
        row = self._rows.token(digest(id))
        if row is None or row.kind != SESSION or row.expires is None or row.expires <= now:
            raise BadToken("the session is over")
        if not hmac.compare_digest(row.claims.get("page", ""), digest(page)):
            raise BadToken("the page secret is not that of the session")
        try:
            account = self._accounts.account(row.username)
        except NoSuchUser:
            raise BadToken("the user of the session is gone") from None
        bearer = Bearer(account, {"username": row.username, "application": False}, application=False)
        if row.expires < now + IDLE_SECONDS - RENEWED_SECONDS:
            self._rows.extend_token(row.digest, min(now + IDLE_SECONDS, row.issued + LONGEST_SECONDS))
        with self._lock:
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[id, page] = generation, min(now, row.expires - RENEWED_SECONDS), bearer
        return bearer

    def remembers(self, id: str, page: str) -> bool:
        """Whether `identify` needs no database."""
        known = self._known.get((id, page))
        return known is not None and known[0] == self._accounts.generation and self._clock() < known[1] + RENEWED_SECONDS

    def close(self, id: str) -> None:
        """End a session; one that is over already is no mistake."""
        self._rows.remove_token(digest(id))
        self._accounts.forget()

    def held(self, username: str, current: str = "") -> list[HeldLogin]:
        """The sessions and tokens of a user, the newest first; `current` is the id or token of the caller."""
        now, here = self._clock(), digest(current) if current else ""
        rows = [row for row in self._rows.tokens(username) if row.expires is None or row.expires > now]
        return [
            HeldLogin(row.digest[:ID_LETTERS], _KINDS[row.kind], _note(row), row.issued, row.expires, row.digest == here)
            for row in reversed(rows)
        ]

    def revoke(self, username: str, id: str) -> None:
        """End one of the user's sessions or tokens by the id that `held` shows. Raises NoSuchToken."""
        found = [row for row in self._rows.tokens(username) if row.digest[:ID_LETTERS] == id]
        if not found:
            raise NoSuchToken("there is no such session or token")
        self._rows.remove_token(found[0].digest)
        self._accounts.forget()

    def revoke_logins(self, username: str) -> int:
        """End every session and log-in of a user; tokens of programs stay. Returns how many there were."""
        ended = sum(self._rows.remove_tokens(username, kind) for kind in (BROWSER, SESSION))
        self._accounts.forget()
        return ended

    def _open(self, username: str, note: str) -> Opened:
        now, id, page = self._clock(), token_urlsafe(32), token_urlsafe(32)
        expires = now + IDLE_SECONDS
        account = self._accounts.account(username)
        self._rows.remove_expired(now)
        self._rows.add_token(Token(digest(id), username, SESSION, now, expires, {"page": digest(page), "note": note[:200]}))
        return Opened(id, page, account, expires)


_KINDS = {BROWSER: "login", SESSION: "page", APPLICATION: "application"}


def _note(row: Token) -> str:
    return str(row.claims.get("note", ""))
