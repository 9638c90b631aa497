"""Logging in and out, and tokens for browsers and programs."""

from __future__ import annotations

from ...jobserver.accounts import LIFE_SECONDS, LONGEST_LIFE, SHORTEST_LIFE
from ...protocol.schema_types import OneOf, Record, Text, Whole
from ..schemas import LOGIN, MESSAGE, SWITCH, TEXT, many, record
from ..toolkit.addresses import counted
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import json_response
from ..toolkit.routing import BROWSER, OPEN, TOKEN, Routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...jobserver.accounts import Account
    from ..toolkit.http import Request, Response

routes = Routes("tokens")
_LOGIN = Record(
    {
        "username": Text("The user.", pattern=r"[\w.-]+", hint="a name has letters, digits, '_', '.' and '-'"),
        "password": Text("The password.", shortest=1),
        "expiration": OneOf("a whole number", Whole(least=SHORTEST_LIFE), Text(pattern=r"[0-9]{1,9}", hint="use digits")),
    },
    required=("username", "password"),
    what="in the request",
)


@routes(
    "POST",
    "/authn/basic/login",
    "/api/v1/authn/basic/login",
    "/api/v1/token",
    "/api/v2/tokens",
    auth=OPEN,
    body=_LOGIN,
    shape=LOGIN,
)
async def login(request: Request) -> Response:
    """Log in with a password; return a token."""
    body = check(await request.data() or {}, _LOGIN)
    request.named = body["username"]
    life = float(body.get("expiration", LIFE_SECONDS))
    if not SHORTEST_LIFE <= life <= LONGEST_LIFE:
        message = f"'expiration' should be between {SHORTEST_LIFE} and {LONGEST_LIFE} seconds"
        raise HttpError(400, "InvalidParametersError", message)
    token, account = await request.site.hash(
        request.site.accounts.login, body["username"], body["password"], address=counted(request.client), expires_in=life
    )
    return json_response(login_json(account, token))


def login_json(account: Account, token: str) -> dict[str, Any]:
    """A log-in as OpenPAI tells it."""
    has_pat = bool(account.extension.get("githubPAT"))
    return {"user": account.username, "token": token, "admin": account.admin, "hasGitHubPAT": has_pat}


@routes("DELETE", "/authn/basic/logout", "/api/v1/authn/basic/logout", auth=BROWSER, shape=MESSAGE)
async def logout(request: Request) -> Response:
    """Log out: the token that is used for this ends."""
    await request.site.call(request.site.accounts.revoke, request.caller.token, request.caller.account)
    return json_response({"message": "Logout successfully"})


@routes("GET", "/tokens", "/api/v1/token", auth=BROWSER, shape=record(tokens=many(TEXT)))
async def tokens(request: Request) -> Response:
    """The caller's tokens."""
    if request.caller.page is not None:  # a script in the page must not come by what works elsewhere
        raise HttpError(403, "ForbiddenUserError", "A session sees tokens by their ids: GET /api/v2/sessions.")
    return json_response({"tokens": await request.site.call(request.site.accounts.tokens, request.caller.username)})


@routes("POST", "/tokens/application", "/api/v1/token/application", auth=BROWSER, shape=record(token=TEXT, application=SWITCH))
async def application_token(request: Request) -> Response:
    """A token for a program; it lasts until it is revoked."""
    note = (await request.data() or {}).get("note", "") if request.header(b"content-type") else ""
    token = await request.site.call(request.site.accounts.grant_application, request.caller.username, str(note)[:200])
    return json_response({"token": token, "application": True})


@routes("GET", "/tokens/check", "/api/v1/token/check", auth=TOKEN, shape=record(username=TEXT, application=SWITCH, admin=SWITCH))
async def check_token(request: Request) -> Response:
    """What the caller's token says."""
    claims = dict(request.caller.bearer.claims) if request.caller.bearer else {}
    return json_response({**claims, "admin": request.caller.account.admin})


@routes("DELETE", "/tokens/{token}", "/api/v1/token/{token}", auth=BROWSER, shape=MESSAGE)
async def revoke(request: Request) -> Response:
    """Make a token worthless."""
    await request.site.call(request.site.accounts.revoke, request.parameters["token"], request.caller.account)
    return json_response({"message": "revoke successfully"})
