"""Who is calling: by token, by an application token as a password, by a session of the page, or by the key of a job's logs."""

from __future__ import annotations

import base64
import hmac
import secrets
import time

from ..client.loopback import is_loopback
from ..jobserver.accounts import DEFAULT_CLUSTER, NoSuchUser
from ..jobserver.models import Caller as TeamCaller
from ..store.server.tokens import BadToken
from .toolkit.errors import HttpError
from .toolkit.routing import ADMIN, BROWSER, KEY, READER, TOKEN_ADMIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..jobserver.accounts import Account, Bearer
    from .context import Site
    from .toolkit.http import Request

KEY_SECONDS = 3600
_REMEMBERED = 4096
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")
_CHALLENGE = (b"www-authenticate", b"Bearer")
COOKIES = ("pailot", "__Host-pailot")
PAGE_HEADER = b"x-pailot-page"


class Caller:
    """Whoever sent a request."""

    __slots__ = ("bearer", "page", "team", "token", "username")

    def __init__(
        self, team: TeamCaller | None = None, bearer: Bearer | None = None, token: str = "", page: str | None = None
    ) -> None:
        self.team = team
        self.bearer = bearer
        self.token = token
        """The token, or the id of the session."""
        self.page = page
        """The page secret, for a session."""
        self.username = team.name if team is not None else ""

    def must(self) -> TeamCaller:
        """The caller, for an operation that needs one."""
        if self.team is None or not self.username:
            raise guest()
        return self.team

    @property
    def account(self) -> Account:
        """The account behind the token."""
        if self.bearer is None:
            raise guest()
        return self.bearer.account


NOBODY = Caller()
ANYONE = Caller(TeamCaller("", clusters=frozenset((DEFAULT_CLUSTER,))))
"""Who reads version 1 without a token: sees what a new user would, so that leaving the token out opens nothing more."""


def guest() -> HttpError:
    return HttpError(
        401, "UnauthorizedUserError", "Guest is not allowed to do this operation.", [(b"www-authenticate", b"Bearer")]
    )


def not_admin() -> HttpError:
    """In OpenPAI's own words, which its clients compare."""
    return HttpError(403, "ForbiddenUserError", "Non-admin is not allow to do this operation.")


def invalid_token() -> HttpError:
    return HttpError(401, "UnauthorizedUserError", "Your token is invalid.", [_CHALLENGE])


def session_over() -> HttpError:
    return HttpError(401, "SessionOverError", "The session is over; log in again.")


def session_id(request: Request) -> str:
    """The id in the session's cookie; nothing where there is none."""
    for part in (request.header(b"cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name in COOKIES:
            return value
    return ""


class Gate:
    """Lets callers in."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._seal = secrets.token_bytes(32)
        self._seen: dict[str, tuple[Bearer, Caller]] = {}

    async def admit(self, request: Request, who: str) -> Caller:
        """The caller, if the route is open to that user; otherwise 401 or 403."""
        header = request.header(b"authorization")
        if header is None:
            if who == READER and self._anonymous(request):
                return ANYONE
            if who == KEY and "key" in request.query:
                return await self._by_key(request)
            id, page = session_id(request), request.header(PAGE_HEADER)
            if not id or not page:
                raise guest()
            caller = await self._by_session(id, page)
        else:
            caller = await self._by_header(header)
        request.caller = caller  # also where the route is not open to this one: the logs name who tried
        if who in (BROWSER, ADMIN) and caller.bearer is not None and caller.bearer.application:
            raise HttpError(403, "ForbiddenUserError", "Applications are not allowed to do this operation.")
        if who in (ADMIN, TOKEN_ADMIN) and not caller.account.admin:
            raise not_admin()
        return caller

    def _anonymous(self, request: Request) -> bool:
        """Whether version 1 is read without a token: as the setting says, or (auto) by this machine alone, and directly.

        A request that came through a proxy does not count as one of this machine (all requests of a trusted proxy came through
        one). Neither does one that names this machine by another host name: a page of another site may have sent it.
        """
        word = self._site.anonymous_read
        if word != "auto":
            return word == "on"
        names = (_without_port(request.header(b"host") or ""), self._site.host, request.client)
        forwarded = any(request.header(each) is not None for each in _FORWARDED)
        return not forwarded and request.client not in self._site.proxies and all(map(is_loopback, names))

    async def _by_header(self, header: str) -> Caller:
        known = self._seen.get(header)
        token, username = (known[1].token, None) if known else _credentials(header)
        try:
            bearer = await self._identify(token, username if not known else None)
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

    async def _by_session(self, id: str, page: str) -> Caller:
        """Both are needed for every request: the cookie reaches other ports of this host, the page secret does not."""
        sessions = self._site.sessions
        try:
            known = sessions.remembers(id, page)
            bearer = sessions.identify(id, page) if known else await self._site.call(sessions.identify, id, page)
        except BadToken:
            raise session_over() from None
        return Caller(team_caller(bearer.account), bearer, id, page)

    async def _identify(self, token: str, username: str | None) -> Bearer:
        """Beside the loop where the database is asked; mostly the accounts know by heart."""
        accounts = self._site.accounts
        if accounts.remembers(token):
            return accounts.identify(token, username)
        return await self._site.call(accounts.identify, token, username)

    async def still(self, caller: Caller) -> bool:
        """Whether a caller who was let in a while ago would be let in now, as the same one with the same rights."""
        accounts = self._site.accounts
        try:
            if caller.page is not None and caller.bearer is not None:
                found = await self._site.call(self._site.sessions.identify, caller.token, caller.page)
                return found.account == caller.bearer.account
            if caller.bearer is not None:
                return (await self._identify(caller.token, None)).account == caller.bearer.account
            if caller.username:  # by a key
                return team_caller(await self._site.call(accounts.account, caller.username)) == caller.team
        except (BadToken, NoSuchUser):
            return False
        return True

    def log_key(self, caller: Caller, job: str) -> str:
        """What opens the logs of one job for an hour, in place of a token: addresses end up in histories and log files."""
        until = int(time.time()) + KEY_SECONDS
        return f"{until}.{self._signature(until, caller.username, job)}.{caller.username}"

    async def _by_key(self, request: Request) -> Caller:
        until, _, rest = request.query["key"].partition(".")
        signature, _, username = rest.partition(".")
        job = request.parameters["job"]
        if not (until.isascii() and until.isdecimal() and len(until) < 15 and signature.isascii()):
            raise invalid_token()
        if not hmac.compare_digest(self._signature(int(until), username, job), signature) or time.time() > int(until):
            raise invalid_token()
        try:
            account = await self._site.call(self._site.accounts.account, username)
        except NoSuchUser:
            raise invalid_token() from None
        return Caller(team_caller(account))

    def _signature(self, until: int, username: str, job: str) -> str:
        return hmac.new(self._seal, f"{until}\n{username}\n{job}".encode(), "sha256").hexdigest()


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).strip("[]").lower()


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
