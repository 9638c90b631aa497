"""Single sign-on: the ways of a browser to the identity provider and back. The paths are OpenPAI's."""

from __future__ import annotations

import re
import sys
from urllib.parse import urlencode

from ...client.pkce import VERIFIER
from ...jobserver.oidc.errors import ProviderUnavailable, SignInRefused
from ...jobserver.oidc.sign_in import COMMAND, OPENPAI, PAGE, Wish
from ...printable import cut
from ...protocol.schema_types import Record, Text
from ..schemas import LOGIN
from ..toolkit.bodies import check
from ..toolkit.errors import HttpError
from ..toolkit.http import Response, json_response
from ..toolkit.routing import OPEN, Query, Routes
from .sessions import no_sign_in
from .tokens import login_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...jobserver.oidc.sign_in import Arrived, SignIn
    from ..toolkit.http import Headers, Request

routes = Routes("sign-in")
RETURN = "/api/v2/authn/oidc/return"
COOKIES = ("pailot-sign-in", "__Host-pailot-sign-in")
MAX_REASON = 200
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_MOVED = {302: "Elsewhere"}
_GRANT = Record(
    {
        "grant": Text("What the sign-in ended with.", shortest=1, longest=200),
        "verifier": Text("The secret whose SHA-256 it was begun with.", pattern=VERIFIER.pattern, hint="see RFC 7636"),
    },
    required=("grant", "verifier"),
    what="in the request",
)
_QUERY = (
    Query("challenge", "SHA-256 of a verifier (PKCE): who has the verifier redeems the grant"),
    Query("redirect_uri", "where the browser goes at the end: a port of its own machine, or one of `oidc_redirects`"),
    Query("state", "what the program at `redirect_uri` gets back"),
    Query("show", "the page shows the grant, to be copied"),
    Query("from", "the view of the page that is shown at the end"),
)


@routes("GET", "/authn/oidc/login", "/api/v1/authn/oidc/login", auth=OPEN, query=_QUERY, answers=_MOVED, kind="text/plain")
async def oidc_login(request: Request) -> Response:
    """Begin to sign in: the browser goes to the identity provider."""
    sign_in = _sign_in(request)
    wish = sign_in.wish(request.query)
    if not wish.kind:  # without a verifier the page has to begin: it makes one
        return _moved("/login")
    begun = await request.site.ask_provider(sign_in.begin, wish, _base(request) + RETURN)
    return _moved(begun.address, _cookie(request, begun.cookie))


@routes("GET", "/authn/oidc/return", "/api/v1/authn/oidc/return", auth=OPEN, answers=_MOVED, kind="text/plain")
async def oidc_return(request: Request) -> Response:
    """End to sign in: the browser comes back from the identity provider."""
    sign_in, query = _sign_in(request), request.query
    wish = Wish("")
    try:
        wish, kept = sign_in.opened(query.get("state", ""), _kept_cookie(request))
        if "error" in query:
            raise SignInRefused(f"the provider says {query['error'][:MAX_REASON]!r}")
        arrived = await request.site.ask_provider(sign_in.finish, wish, kept, query.get("code", ""), query.get("iss", ""))
    except (SignInRefused, ProviderUnavailable) as error:
        request.named = str(error)
        reason = cut(str(error), MAX_REASON)
        print(f"pailot: sign-in refused (request {request.id}): {reason}", file=sys.stderr, flush=True)  # noqa: T201  # the log
        return _refused(request, wish, error.word)
    request.named = arrived.account.username
    return _moved(await _place(request, sign_in, arrived), _cookie(request, ""))


@routes("POST", "/authn/oidc/token", auth=OPEN, body=_GRANT, shape=LOGIN)
async def oidc_token(request: Request) -> Response:
    """Exchange what a sign-in ended with for a token."""
    sign_in, accounts = _sign_in(request), request.site.accounts
    body = check(await request.data() or {}, _GRANT)
    request.named = user = sign_in.redeem(body["grant"], body["verifier"])
    token = await request.site.call(accounts.login_proved, user)
    return json_response(login_json(await request.site.call(accounts.account, user), token))


@routes("GET", "/authn/oidc/logout", "/api/v1/authn/oidc/logout", auth=OPEN, answers=_MOVED, kind="text/plain")
async def oidc_logout(request: Request) -> Response:
    """Log out at the identity provider. Sessions and tokens of this server are ended by their own routes."""
    sign_in = _sign_in(request)
    place = (await request.site.ask_provider(sign_in.provider.metadata)).end_session
    if not place:
        return _moved("/login")
    query = urlencode({"client_id": sign_in.settings.client_id, "post_logout_redirect_uri": f"{_base(request)}/login"})
    return _moved(f"{place}{'&' if '?' in place else '?'}{query}")


async def _place(request: Request, sign_in: SignIn, arrived: Arrived) -> str:
    """Where the browser goes after a sign-in. A grant is in the fragment: it reaches no server and no log on its way."""
    wish, account = arrived.wish, arrived.account
    if wish.kind == OPENPAI:
        token = await request.site.call(request.site.accounts.login_proved, account.username)
        said = {key: _query_word(value) for key, value in login_json(account, token).items()}
        return f"{wish.to}?{urlencode({**said, 'from': wish.next})}"
    grant = sign_in.grant(account.username, wish.challenge)
    if wish.kind == PAGE:
        return f"/login?{urlencode({'next': wish.next})}#{urlencode({'grant': grant})}"
    return f"/login#{urlencode({'grant': grant, 'for': COMMAND, 'user': account.username, 'to': wish.to, 'state': wish.state})}"


def _query_word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(request: Request, wish: Wish, word: str) -> Response:
    """The way of a sign-in that failed; the page has the words for it. A stranger's link cannot put words there."""
    cookie = _cookie(request, "")
    if wish.kind == OPENPAI:
        place = f"{wish.to}?{urlencode({'errorMessage': word})}"
    elif wish.kind == COMMAND and wish.to:
        place = f"{wish.to}?{urlencode({'error': word, 'state': wish.state})}"
    else:
        place = f"/login#{urlencode({'error': word})}"
    return _moved(place, cookie)


def _sign_in(request: Request) -> SignIn:
    if request.site.sign_in is None:
        raise no_sign_in()
    return request.site.sign_in


def _moved(place: str, headers: Headers | None = None) -> Response:
    fixed: Headers = [(b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer")]
    return Response(b"", 302, headers=[(b"location", place.encode("ascii")), *fixed, *(headers or [])])


def _base(request: Request) -> str:
    """The address of this server as the browser has it. The provider compares it with what is registered there."""
    if request.site.public_url:
        return request.site.public_url
    host = request.header(b"host") or ""
    if not _HOST.fullmatch(host):
        raise HttpError(400, "InvalidParametersError", "the Host header is no name of a host")
    return f"{request.scope.get('scheme', 'http')}://{host}"


def _kept_cookie(request: Request) -> str:
    for part in (request.header(b"cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIES[_secure(request)]:
            return value
    return ""


def _cookie(request: Request, value: str) -> Headers:
    """`Lax`, since the browser comes back from another site."""
    secure = _secure(request)
    text = f"{COOKIES[secure]}={value}; Path=/; Max-Age={600 if value else 0}; HttpOnly; SameSite=Lax"
    return [(b"set-cookie", (text + "; Secure" if secure else text).encode())]


def _secure(request: Request) -> bool:
    return request.scope.get("scheme") == "https" or request.site.public_url.startswith("https://")
