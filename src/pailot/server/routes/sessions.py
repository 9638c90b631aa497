"""Sessions of the web page; sessions and tokens by their id, never by their text."""

from __future__ import annotations

from ...jobserver.sessions import LONGEST_SECONDS
from ...protocol.schema_types import Record, Text
from ...store.server.tokens import BadToken
from ..auth import COOKIES, invalid_token
from ..schemas import MESSAGE, NUMBER, SWITCH, TEXT, many, maybe, record
from ..toolkit.addresses import counted
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import BROWSER, OPEN, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...jobserver.accounts import Account
    from ...jobserver.sessions import Opened
    from ..toolkit.http import Headers, Request, Response

routes = Routes("sessions")
_OPEN = Record(
    {
        "username": Text("The user."),
        "password": Text("The password."),
        "code": Text("In place of both: a code of `POST /api/v2/session/code`, which works once."),
        "grant": Text("In place of both: what a sign-in at the identity provider ended with."),
        "verifier": Text("With a grant: the secret that the sign-in was begun with."),
    },
    what="in the request",
)
_ABOUT = record(user=TEXT, admin=SWITCH, virtualClusters=many(TEXT), email=TEXT)
_SESSION = {**_ABOUT, "properties": {**_ABOUT["properties"], "page": TEXT, "expires": NUMBER}}
_HELD = record(id=TEXT, kind=TEXT, note=TEXT, created=NUMBER, expires=maybe(NUMBER), current=SWITCH)


@routes("POST", "/session", auth=OPEN, body=_OPEN, shape=_SESSION)
async def open_session(request: Request) -> Response:
    """Log in to the web page: sets a cookie, and returns the page secret that goes with it."""
    if "json" not in (request.header(b"content-type") or ""):
        raise HttpError(415, "UnsupportedMediaTypeError", "a session is opened with application/json")
    body = check(await request.data() or {}, _OPEN)
    note = request.header(b"user-agent") or ""
    sessions = request.site.sessions
    if body.get("grant"):
        if request.site.sign_in is None:
            raise no_sign_in()
        user = request.site.sign_in.redeem(body["grant"], body.get("verifier", ""))
        opened = await request.site.call(sessions.open_proved, user, note)
    elif body.get("code"):
        try:
            opened = await request.site.call(sessions.open_by_code, body["code"], note)
        except BadToken as error:
            raise HttpError(401, "UnauthorizedUserError", str(error)) from None
    else:
        name, password = body.get("username", ""), body.get("password", "")
        request.named = name
        opened = await request.site.hash(sessions.open, name, password, address=counted(request.client), note=note)
    request.named = opened.account.username
    about = {**_about(opened.account), "page": opened.page, "expires": int(opened.expires * 1000)}
    return json_response(about, headers=_cookie(request, opened))


@routes("GET", "/session", auth=BROWSER, shape=_ABOUT)
async def session(request: Request) -> Response:
    """Who is logged in."""
    return json_response(_about(request.caller.account))


@routes("DELETE", "/session", auth=BROWSER, shape=MESSAGE)
async def close_session(request: Request) -> Response:
    """Log out of the web page."""
    if request.caller.page is None:
        raise invalid_token()
    await request.site.call(request.site.sessions.close, request.caller.token)
    return json_response({"message": "Logout successfully"}, headers=_cookie(request, None))


@routes("POST", "/session/code", auth=BROWSER, shape=record(code=TEXT))
async def session_code(request: Request) -> Response:
    """A code that opens a session of the caller once, within a minute."""
    code = await request.site.call(request.site.sessions.code_for, request.caller.account.username)
    return json_response({"code": code})


@routes("GET", "/sessions", auth=BROWSER, shape=many(_HELD))
async def held(request: Request) -> Response:
    """The caller's sessions and tokens by their ids."""
    found = await request.site.call(request.site.sessions.held, request.caller.username, request.caller.token)
    return json_response(
        [
            {
                "id": each.id,
                "kind": each.kind,
                "note": each.note,
                "created": int(each.created * 1000),
                "expires": None if each.expires is None else int(each.expires * 1000),
                "current": each.current,
            }
            for each in found
        ]
    )


@routes("DELETE", "/sessions/{id}", auth=BROWSER, shape=MESSAGE)
async def revoke(request: Request) -> Response:
    """End a session or token of the caller by its id."""
    await request.site.call(request.site.sessions.revoke, request.caller.username, request.parameters["id"])
    return json_response({"message": "revoke successfully"})


@routes("DELETE", "/sessions", auth=BROWSER, shape=MESSAGE)
async def revoke_all(request: Request) -> Response:
    """Log out everywhere: ends every session and log-in of the caller; tokens of programs stay."""
    count = await request.site.call(request.site.sessions.revoke_logins, request.caller.username)
    return json_response({"message": f"{count} sessions and log-ins ended"}, headers=_cookie(request, None))


def no_sign_in() -> HttpError:
    """There is no identity provider."""
    return HttpError(404, "NoApiError", "this server logs in by password: POST /api/v2/authn/basic/login")


def _about(account: Account) -> dict[str, object]:
    clusters = list(account.virtual_clusters)
    return {"user": account.username, "admin": account.admin, "virtualClusters": clusters, "email": account.email}


def _cookie(request: Request, opened: Opened | None) -> Headers:
    """Set the session's cookie, or take it away."""
    secure = request.scope.get("scheme") == "https"
    name = COOKIES[secure]
    life = int(LONGEST_SECONDS) if opened is not None else 0
    value = f"{name}={opened.id if opened is not None else ''}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict"
    return [(b"set-cookie", (value + "; Secure" if secure else value).encode())]
