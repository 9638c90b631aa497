"""Who is calling: by token, by basic authentication with an application token, or by the key of a job's logs."""

from __future__ import annotations

import base64
import hmac
import secrets
import time

from ..service.team.values import Caller as TeamCaller
from ..store.server.tokens import BadToken
from .http import HttpError
from .routing import ADMIN, BROWSER, KEY, READER, TOKEN_ADMIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..service.accounts import Account, Bearer
    from .http import Request
    from .site import Site

_KEY_SECONDS = 3600
_REMEMBERED = 4096
_CHALLENGE = (b"www-authenticate", b"Bearer")


class Caller:
    """Whoever sent a request."""

    __slots__ = ("bearer", "team", "token", "username")

    def __init__(self, team: TeamCaller | None = None, bearer: Bearer | None = None, token: str = "") -> None:
        self.team = team
        self.bearer = bearer
        self.token = token
        self.username = team.name if team is not None else ""

    def must(self) -> TeamCaller:
        """The caller for something that nobody may do without a name."""
        if self.team is None:
            raise guest()
        return self.team

    @property
    def account(self) -> Account:
        """The account behind the token."""
        if self.bearer is None:
            raise guest()
        return self.bearer.account


NOBODY = Caller()


def guest() -> HttpError:
    return HttpError(
        401, "UnauthorizedUserError", "Guest is not allowed to do this operation.", [(b"www-authenticate", b"Bearer")]
    )


def invalid_token() -> HttpError:
    return HttpError(401, "UnauthorizedUserError", "Your token is invalid.", [_CHALLENGE])


class Gate:
    """Lets callers in."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._seal = secrets.token_bytes(32)
        self._seen: dict[str, tuple[Bearer, Caller]] = {}

    async def admit(self, request: Request, who: str) -> Caller:
        """The caller, if that is somebody whom the route is for; else 401 or 403."""
        header = request.header(b"authorization")
        if header is None:
            if who == READER and self._site.anonymous_read:
                return Caller()
            if who == KEY and "key" in request.query:
                return await self._by_key(request)
            raise guest()
        caller = await self._by_header(header)
        if who in (BROWSER, ADMIN) and caller.bearer is not None and caller.bearer.application:
            raise HttpError(403, "ForbiddenUserError", "Applications are not allowed to do this operation.")
        if who in (ADMIN, TOKEN_ADMIN) and not caller.account.admin:
            raise HttpError(403, "ForbiddenUserError", f"{caller.username} is not allowed to do this operation.")
        return caller

    async def _by_header(self, header: str) -> Caller:
        accounts = self._site.accounts
        known = self._seen.get(header)
        token, username = (known[1].token, None) if known else _credentials(header)
        try:
            # Of a token that came before, the accounts know by heart whether it is still good.
            bearer = accounts.identify(token) if known else await self._site.call(accounts.identify, token, username)
        except BadToken:
            self._seen.pop(header, None)
            raise invalid_token() from None
        if known and known[0] is bearer:
            return known[1]
        caller = Caller(team_caller(bearer.account), bearer, token)
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        self._seen[header] = (bearer, caller)
        return caller

    def log_key(self, caller: Caller, job: str) -> str:
        """What opens the logs of one job for an hour, in place of a token: addresses end up in histories and log files."""
        until = int(time.time()) + _KEY_SECONDS
        return f"{until}.{self._signature(until, caller.username, job)}.{caller.username}"

    async def _by_key(self, request: Request) -> Caller:
        until, _, rest = request.query["key"].partition(".")
        signature, _, username = rest.partition(".")
        job = request.parameters["job"]
        if not (until.isascii() and until.isdecimal() and len(until) < 15 and signature.isascii()):
            raise invalid_token()
        if not hmac.compare_digest(self._signature(int(until), username, job), signature) or time.time() > int(until):
            raise invalid_token()
        account = await self._site.call(self._site.accounts.account, username)
        return Caller(team_caller(account))

    def _signature(self, until: int, username: str, job: str) -> str:
        return hmac.new(self._seal, f"{until}\n{username}\n{job}".encode(), "sha256").hexdigest()


def team_caller(account: Account) -> TeamCaller:
    return TeamCaller(account.username, account.admin, frozenset(account.virtual_clusters))


def _credentials(header: str) -> tuple[str, str | None]:
    """The token, and the user that must be its owner where the header names one."""
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer" and value:
        return value, None
    if scheme.lower() == "basic" and value:
        try:
            username, colon, password = base64.b64decode(value, validate=True).decode("utf-8").partition(":")
        except ValueError:
            raise invalid_token() from None
        if colon and password:
            return password, username
    raise invalid_token()
