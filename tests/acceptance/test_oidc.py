"""Single sign-on: a real server and a real OpenID provider; and a provider that forges, each of whose tricks is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from pailot.client.pkce import challenge_of, new_verifier
from tests.parts.oidc import (
    CLIENT_ID,
    CLIENT_SECRET,
    Browser,
    Forger,
    Key,
    Page,
    RealProvider,
    signed_with_the_public_key,
    unsigned,
)

from ..support.http_server import PASSWORD, Server, job
from ..support.sign_on import RETURN, address_in, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOGIN = "/api/v2/authn/oidc/login"


def begin(server: Server, **query: str) -> str:
    return f"{server.url}{LOGIN}?{urlencode(query)}"


def page_session(server: Server, page: Page, verifier: str) -> Any:
    return server.ask("POST", "/session", {"grant": page.fragment["grant"], "verifier": verifier}, None)


def enter(server: Server, browser: Browser, user: str) -> Any:
    """Sign in as the page does; the response with the session."""
    verifier = new_verifier()
    page = browser.sign_in(begin(server, challenge=challenge_of(verifier)), user)
    assert "grant" in page.fragment, (page.address, server.log.read_text())
    return page_session(server, page, verifier)


@pytest.fixture(scope="module")
def provider(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProvider]:
    """One that tells claims in the ID token, for the server on SQLite; one that tells them apart, for the other."""
    made = RealProvider(tmp_path_factory.mktemp("provider"), userinfo=bool(database))
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(provider: RealProvider, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    more = settings(provider.issuer, tmp_path_factory.mktemp("server"), PAILOT_OIDC_REDIRECTS="http://portal.invalid/login")
    with Server(None, "--stop-jobs", PAILOT_DATABASE=database, **more) as started:
        provider.user("alice", "researchers")
        provider.start(f"{started.url}{RETURN}")
        yield started
        log = started.log.read_text()
        assert "defect" not in log
        assert CLIENT_SECRET not in log


def test_the_first_sign_in_makes_the_account_and_groups_are_read_at_each(server: Server, provider: RealProvider) -> None:
    told = server.get("/authn/info", None).json
    assert (told["authn_type"], told["password"], told["signInWith"]) == ("basic", True, "Example")
    answer = enter(server, Browser(), "alice")
    assert answer.status == 200, answer
    assert (answer.json["user"], answer.json["admin"]) == ("alice", False)
    assert sorted(answer.json["virtualClusters"]) == ["default", "research"]
    cookie = answer.headers["set-cookie"].partition(";")[0]
    headers = {"Cookie": cookie, "X-Pailot-Page": answer.json["page"]}
    assert server.ask("GET", "/session", token=None, headers=headers).json["user"] == "alice"
    assert server.get("/users/alice").json["email"] == "alice@example.org"

    provider.user("alice", "operators", "strangers")
    again = enter(server, Browser(), "alice")
    assert (again.json["user"], again.json["admin"]) == ("alice", True)
    provider.user("alice", "strangers")
    last = enter(server, Browser(), "alice")
    assert (last.json["admin"], last.json["virtualClusters"]) == (False, ["default"])
    # The session of before has the rights of now, and ends with the user.
    assert server.ask("GET", "/session", token=None, headers=headers).json["virtualClusters"] == ["default"]
    assert server.ask("DELETE", "/users/alice").status == 200
    assert server.ask("GET", "/session", token=None, headers=headers).status == 401
    assert enter(server, Browser(), "alice").json["user"] == "alice"


def test_log_ins_and_refusals_are_in_the_audit_log(server: Server) -> None:
    enter(server, Browser(), "alice")
    server.get(f"{RETURN}?code=x&state=forged", None)
    entries = server.get("/audit?limit=1000").json
    did = {(each["user"], each["action"]) for each in entries}
    assert ("alice", "oidc-return") in did
    assert ("alice", "open-session") in did
    assert any(each["action"] == "oidc-return" and "was not made here" in each["target"] for each in entries)


def test_a_grant_works_once_and_only_with_its_verifier(server: Server) -> None:
    browser, verifier = Browser(), new_verifier()
    page = browser.sign_in(begin(server, challenge=challenge_of(verifier)), "alice")
    assert urlsplit(page.address).path == "/login"
    assert "grant" not in page.query, "it would be in the logs of proxies"
    assert page_session(server, page, new_verifier()).status == 401
    assert page_session(server, page, verifier).status == 401, "a grant that was guessed at is gone"
    page = browser.open(begin(server, challenge=challenge_of(verifier)))
    assert page_session(server, page, verifier).status == 200
    assert page_session(server, page, verifier).status == 401


def test_a_code_that_is_replayed_a_state_of_another_browser_and_log_in_csrf(server: Server) -> None:
    verifier = new_verifier()
    attacker = Browser()
    stopped = attacker.sign_in(begin(server, challenge=challenge_of(verifier)), "alice", stop=f"{server.url}{RETURN}")
    victim = Browser()
    assert victim.open(stopped.address).fragment == {"error": "refused"}, "no cookie: the sign-in was begun elsewhere"
    started = Browser()
    started.sign_in(begin(server, challenge=challenge_of(new_verifier())), "alice", stop=f"{server.url}{RETURN}")
    assert started.open(stopped.address).fragment == {"error": "refused"}, "a cookie of another sign-in"
    other = started.open(begin(server, challenge=challenge_of(new_verifier())), stop=f"{server.url}{RETURN}")
    mixed = f"{server.url}{RETURN}?{urlencode({**other.query, 'code': stopped.query['code']})}"
    assert started.open(mixed).fragment == {"error": "refused"}, "the provider compares the code with the PKCE challenge"
    used = Browser()
    back = used.sign_in(begin(server, challenge=challenge_of(verifier)), "alice", stop=f"{server.url}{RETURN}")
    cookie = dict(used.cookies[urlsplit(server.url).netloc])
    assert "grant" in used.open(back.address).fragment
    used.cookies[urlsplit(server.url).netloc] = cookie
    assert used.open(back.address).fragment == {"error": "refused"}, "the same address a second time"
    # The same code in a state of its own: the provider refuses it, as it was used.
    fresh = used.open(begin(server, challenge=challenge_of(verifier)), stop=f"{server.url}{RETURN}")
    replayed = {**fresh.query, "code": back.query["code"]}
    assert used.open(f"{server.url}{RETURN}?{urlencode(replayed)}").fragment == {"error": "refused"}


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "http://evil.example:80/",
        "http://127.0.0.1.evil.example:80/",
        "http://127.0.0.1@evil.example:80/",
        "http://127.0.0.1:80@evil.example/",
        "http://127.0.0.1\\@evil.example:80/",
        "//evil.example",
        "javascript:alert(1)",
        "http://portal.invalid/login/more",
        "http://portal.invalid.evil.example/login",
    ],
)
def test_no_open_redirect(server: Server, address: str) -> None:
    for query in ({"redirect_uri": address}, {"redirect_uri": address, "challenge": challenge_of(new_verifier())}):
        assert server.get(f"{LOGIN}?{urlencode(query)}", None).status == 400
    page = Browser().sign_in(begin(server, challenge=challenge_of(new_verifier()), **{"from": address}), "alice")
    assert page.query["next"] == "/jobs"
    assert page.address.startswith(f"{server.url}/login?")


def test_the_clients_of_openpai(server: Server) -> None:
    with_token = (
        f"{server.url}/api/v1/authn/oidc/login?{urlencode({'redirect_uri': 'http://portal.invalid/login', 'from': '/x'})}"
    )
    page = Browser().sign_in(with_token, "alice", stop="http://portal.invalid")
    assert {key: page.query[key] for key in ("user", "admin", "hasGitHubPAT", "from")} == {
        "user": "alice",
        "admin": "false",
        "hasGitHubPAT": "false",
        "from": "/x",
    }
    assert server.get("/tokens/check", page.query["token"]).json["username"] == "alice"
    assert server.ask("GET", "/authn/oidc/login", token=None).headers["location"] == "/login"
    gone = server.ask("GET", "/api/v1/authn/oidc/logout", token=None)
    assert gone.status == 302
    assert parse_qs(urlsplit(gone.headers["location"]).query)["client_id"] == [CLIENT_ID]


def command(server: Server, folder: Path, *options: str) -> subprocess.Popen[str]:
    environment = {**server.environment, "XDG_CONFIG_HOME": str(folder), "PAILOT_HOME": str(folder), "BROWSER": "true"}
    arguments = [sys.executable, "-m", "pailot", "login", server.url, *options]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(arguments, env=environment, text=True, **pipes)


def test_pailot_login_through_the_browser(server: Server, tmp_path: Path) -> None:
    process = command(server, tmp_path)
    address = address_in(process)
    page = Browser().sign_in(address, "alice")
    said = page.fragment
    assert (said["for"], said["user"]) == ("command", "alice")
    assert said["to"].startswith("http://127.0.0.1:")
    stranger = Browser().open(f"{said['to']}?{urlencode({'grant': 'x', 'state': 'guessed'})}")
    assert stranger.status == 404, "another page cannot end the sign-in"
    done = Browser().open(f"{said['to']}?{urlencode({'grant': said['grant'], 'state': said['state']})}")
    assert "logged in on the command line" in done.text
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "logged in" in out) == (0, True), err
    kept = json.loads((tmp_path / "pailot" / "credentials.json").read_text())
    token = kept["servers"][server.url]["token"]
    assert server.get("/tokens/check", token).json["username"] == "alice"
    assert token not in out + err


def test_pailot_login_with_a_browser_elsewhere(server: Server, tmp_path: Path) -> None:
    process = command(server, tmp_path, "--no-browser")
    said = Browser().sign_in(address_in(process), "alice").fragment
    assert said["to"] == ""
    out, err = process.communicate(said["grant"] + "\n", timeout=60)
    assert process.returncode == 0, err
    assert "as alice" in out


def test_pailot_login_tells_why_it_failed(server: Server, tmp_path: Path, provider: RealProvider) -> None:
    provider.user("admin")  # the name of an account that is not the provider's
    process = command(server, tmp_path)
    Browser().sign_in(address_in(process), "admin")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "another account of the server has this name" in err


def test_a_key_that_was_changed(server: Server, provider: RealProvider) -> None:
    assert enter(server, Browser(), "alice").status == 200
    provider.close()
    page = Browser().open(begin(server, challenge=challenge_of(new_verifier())), stop=provider.issuer)
    assert page.address.startswith(provider.issuer), "what the provider said of itself is remembered"
    provider.start(kid="second")
    assert enter(server, Browser(), "alice").status == 200


def test_without_passwords(provider: RealProvider, tmp_path: Path) -> None:
    provider.close()
    provider.user("root-of-all", "operators")
    more = settings(provider.issuer, tmp_path, PAILOT_PASSWORD_LOGIN="off", PAILOT_OIDC_ALLOWED_GROUPS="operators,researchers")
    with Server(None, "--stop-jobs", **more) as server:
        provider.start(f"{server.url}{RETURN}")
        assert server.told["password"] is None
        told = server.get("/authn/info", None).json
        assert (told["authn_type"], told["password"], told["loginURIMethod"]) == ("OIDC", False, "get")
        assert server.get("/info", None).json["authnMethod"] == "OIDC"
        for path in ("/authn/basic/login", "/session"):
            refused = server.ask("POST", path, {"username": "admin", "password": PASSWORD}, None)
            assert (refused.status, refused.code) == (403, "ForbiddenUserError")
        provider.user("alice", "researchers")
        session = enter(server, Browser(), "alice")
        headers = {"Cookie": session.headers["set-cookie"].partition(";")[0], "X-Pailot-Page": session.json["page"]}
        assert enter(server, Browser(), "root-of-all").json["admin"] is True
        provider.user("alice", "strangers")
        page = Browser().sign_in(begin(server, challenge=challenge_of(new_verifier())), "alice")
        assert page.fragment == {"error": "not-allowed"}
        assert server.ask("GET", "/session", token=None, headers=headers).status == 401, "it ends the sessions of before"


@pytest.mark.parametrize("rule", ["create", "link", "existing"])
def test_whose_account_a_first_sign_in_opens(provider: RealProvider, tmp_path: Path, rule: str) -> None:
    provider.close()
    more = settings(provider.issuer, tmp_path, PAILOT_OIDC_ACCOUNTS=rule)
    with Server(None, "--stop-jobs", **more) as server:
        provider.start(f"{server.url}{RETURN}")
        server.user("bob")
        for name, sub in (("bob", "bob"), ("new", "new"), ("admin", "admin"), ("second", "second")):
            provider.user(name, sub=sub)
        provider.user("second", preferred_username="bob@example.org")

        def word(name: str) -> str:
            found = Browser().sign_in(begin(server, challenge=challenge_of(new_verifier())), name)
            return found.fragment.get("error", "in")

        expected = {
            "create": ("name-in-use", "in", "name-in-use", "name-in-use"),
            "link": ("in", "in", "name-in-use", "name-in-use"),
            "existing": ("in", "not-allowed", "name-in-use", "name-in-use"),
        }
        assert tuple(word(name) for name in ("bob", "new", "admin", "second")) == expected[rule]


# A provider that forges


@pytest.fixture(scope="module")
def forger() -> Iterator[Forger]:
    made = Forger()
    yield made
    made.close()


@pytest.fixture(scope="module")
def cheated(forger: Forger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(None, "--stop-jobs", **settings(forger.issuer, tmp_path_factory.mktemp("cheated"))) as started:
        yield started
        assert "defect" not in started.log.read_text()


def outcome(server: Server, forger: Forger, **query: str) -> dict[str, str]:
    """What a sign-in ends with, whose code the forger exchanges."""
    browser = Browser()
    page = browser.open(begin(server, challenge=challenge_of(new_verifier())), stop=forger.issuer)
    forger.nonce = page.query["nonce"]
    assert page.query["code_challenge_method"] == "S256"
    return browser.open(f"{server.url}{RETURN}?{urlencode({'code': 'x', 'state': page.query['state'], **query})}").fragment


def test_what_is_right_is_taken(cheated: Server, forger: Forger) -> None:
    forger.token = forger.sign
    assert "grant" in outcome(cheated, forger)
    forger.token = lambda claims: forger.sign({**claims, "aud": [CLIENT_ID, "other"], "azp": CLIENT_ID})
    assert "grant" in outcome(cheated, forger)


STOLEN = Key("forger")
"""The name of the published key, and another key."""
WITHDRAWN = Key("withdrawn")
FORGERIES: dict[str, Callable[[Forger, dict[str, Any]], str]] = {
    "issuer": lambda forger, claims: forger.sign({**claims, "iss": "https://evil.example"}),
    "issuer with a slash": lambda forger, claims: forger.sign({**claims, "iss": f"{forger.issuer}/"}),
    "audience": lambda forger, claims: forger.sign({**claims, "aud": "another-client"}),
    "audiences": lambda forger, claims: forger.sign({**claims, "aud": [CLIENT_ID, "another-client"]}),
    "authorized party": lambda forger, claims: forger.sign({**claims, "azp": "another-client"}),
    "nonce": lambda forger, claims: forger.sign({**claims, "nonce": "of-another-sign-in"}),
    "nonce as a list": lambda forger, claims: forger.sign({**claims, "nonce": [claims["nonce"]]}),
    "no nonce": lambda forger, claims: forger.sign({key: value for key, value in claims.items() if key != "nonce"}),
    "no end": lambda forger, claims: forger.sign({key: value for key, value in claims.items() if key != "exp"}),
    "no subject": lambda forger, claims: forger.sign({key: value for key, value in claims.items() if key != "sub"}),
    "expired": lambda forger, claims: forger.sign({**claims, "exp": int(time.time()) - 120, "iat": int(time.time()) - 400}),
    "made in the future": lambda forger, claims: forger.sign({**claims, "iat": int(time.time()) + 3600}),
    "alg none": lambda _, claims: unsigned(claims),
    "alg none with the key's name": lambda forger, claims: f"{unsigned({**claims, 'kid': forger.key.kid})}",
    "HS256 with the public key": lambda forger, claims: signed_with_the_public_key(claims, forger.key),
    "another key of the same name": lambda forger, claims: forger.sign(claims, STOLEN),
    "a key that was withdrawn": lambda forger, claims: forger.sign(claims, WITHDRAWN),
    "signature cut off": lambda forger, claims: forger.sign(claims).rpartition(".")[0] + ".",
    "no token": lambda forger, claims: "not.a.token",
    "empty": lambda forger, claims: "",
    "very long": lambda forger, claims: forger.sign({**claims, "more": "x" * 100_000}),
    "no name": lambda forger, claims: forger.sign({**claims, "preferred_username": None}),
    "a name with a slash": lambda forger, claims: forger.sign({**claims, "sub": "new", "preferred_username": "../admin"}),
    "a name that is reserved": lambda forger, claims: forger.sign({**claims, "sub": "new", "preferred_username": "me"}),
}


@pytest.mark.parametrize("trick", FORGERIES)
def test_a_forged_token_is_refused(cheated: Server, forger: Forger, trick: str) -> None:
    forger.published = [forger.key.public_jwk()]
    forger.token = lambda claims: FORGERIES[trick](forger, claims)
    try:
        assert outcome(cheated, forger) == {"error": "refused"}
    finally:
        forger.token = forger.sign


def test_a_key_is_good_until_the_provider_withdraws_it(cheated: Server, forger: Forger) -> None:
    forger.token = lambda claims: forger.sign(claims, WITHDRAWN)
    forger.published = [forger.key.public_jwk(), WITHDRAWN.public_jwk()]
    assert "grant" in outcome(cheated, forger)
    forger.published = [forger.key.public_jwk()]
    assert outcome(cheated, forger) == {"error": "refused"}
    forger.published = [{**forger.key.public_jwk(), "use": "enc"}]
    forger.token = forger.sign
    assert outcome(cheated, forger) == {"error": "refused"}, "not a key for signatures"
    forger.published = [{"kty": "oct", "kid": "forger", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]
    assert outcome(cheated, forger) == {"error": "refused"}, "no shared secret is a key"
    forger.published = [forger.key.public_jwk()]


def test_a_return_from_another_issuer_or_with_an_error(cheated: Server, forger: Forger) -> None:
    assert outcome(cheated, forger, iss="https://evil.example") == {"error": "refused"}
    assert "grant" in outcome(cheated, forger, iss=forger.issuer)
    assert outcome(cheated, forger, error="access_denied") == {"error": "refused"}
    assert outcome(cheated, forger, code="") == {"error": "refused"}
    assert "<script>" not in json.dumps(outcome(cheated, forger, error="<script>"))


def test_no_request_follows_to_another_host(cheated: Server, forger: Forger) -> None:
    elsewhere = Forger()

    def away(request: BaseHTTPRequestHandler) -> bool:
        if request.path not in ("/token", "/keys"):
            return False
        request.send_response(307)
        request.send_header("Location", elsewhere.issuer.replace("127.0.0.1", "localhost") + request.path)
        request.send_header("Content-Length", "0")
        request.end_headers()
        return True

    forger.reply = away
    try:
        assert outcome(cheated, forger) == {"error": "unavailable"}
    finally:
        forger.reply = lambda _: False
        elsewhere.close()
    assert elsewhere.asked == []


def test_a_provider_that_never_ends_its_reply(cheated: Server, forger: Forger) -> None:
    def endless(request: BaseHTTPRequestHandler) -> bool:
        if request.path != "/token":
            return False
        request.send_response(200)
        request.end_headers()
        try:
            for _ in range(4000):
                request.wfile.write(b" " * 1024)
        except OSError:
            pass  # the server has seen enough
        return True

    def dripping(request: BaseHTTPRequestHandler) -> bool:
        if request.path != "/token":
            return False
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b" ")
                time.sleep(0.2)
        except OSError:
            return True

    try:
        forger.reply = endless
        assert outcome(cheated, forger) == {"error": "unavailable"}
        forger.reply = dripping
        began = time.monotonic()
        assert outcome(cheated, forger) == {"error": "unavailable"}
        assert time.monotonic() - began < 30
    finally:
        forger.reply = lambda _: False


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"issuer": "https://evil.example"}, "another issuer"),
        ({"token_endpoint": "http://169.254.169.254/token"}, "https://"),
        ({"token_endpoint": "https://evil.example/token"}, "oidc_hosts"),
        ({"jwks_uri": "file:///etc/passwd"}, "should read like"),
        ({"authorization_endpoint": 7}, "does not say"),
    ],
)
def test_what_a_provider_must_not_say_of_itself(said: dict[str, Any], why: str, tmp_path: Path) -> None:
    forger = Forger()
    forger.metadata = said
    try:
        with Server(None, "--stop-jobs", **settings(forger.issuer, tmp_path)) as server:
            refused = server.get(f"{LOGIN}?{urlencode({'challenge': challenge_of(new_verifier())})}", None)
            assert (refused.status, refused.code) == (503, "UnavailableError")
            assert why in refused.json["message"]
    finally:
        forger.close()


def test_the_client_secret_is_in_no_environment_of_the_server_or_its_keeper(tmp_path: Path) -> None:
    """A task that runs as the server's own user can read these."""
    more = settings("https://login.example.org", tmp_path, PAILOT_OIDC_CLIENT_SECRET=CLIENT_SECRET)
    with Server(None, "--stop-jobs", **more) as server:
        assert server.run(job("any"))["jobStatus"]["state"] == "SUCCEEDED"
        home = str(server.home).encode()
        seen = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            except OSError:
                continue  # it has ended, or is another user's
            if home in environment or home in line:
                seen.append(line)
                assert CLIENT_SECRET.encode() not in environment + line
        assert len(seen) >= 2


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"PAILOT_OIDC_ISSUER": "http://login.example.org"}, "oidc_issuer: should begin with https://"),
        ({"PAILOT_OIDC_ISSUER": "https://user:password@login.example.org"}, "oidc_issuer: should read like"),
        ({"PAILOT_OIDC_CLIENT_ID": ""}, "oidc_client_id"),
        ({"PAILOT_OIDC_ACCOUNTS": "all"}, "oidc_accounts: should be create, link or existing"),
        ({"PAILOT_OIDC_CLIENT_SECRET_FILE": "/no/such/file"}, "oidc_client_secret_file: /no/such/file cannot be read"),
        ({"PAILOT_OIDC_GROUPS": '{"a": 1}'}, "oidc_groups: 'a' should name"),
        ({"PAILOT_OIDC_ISSUER": "", "PAILOT_PASSWORD_LOGIN": "off"}, "no user could log in"),
    ],
)
def test_settings_that_cannot_work(changed: dict[str, str], why: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        **settings("https://login.example.org", tmp_path),
        **changed,
        "PAILOT_HOME": str(tmp_path / "home"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pailot", "serve", "--port", "0"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr
