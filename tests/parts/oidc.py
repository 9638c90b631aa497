"""Identity providers for tests: a real one (npm `oidc-provider`) and one that forges; and a browser without a screen."""

from __future__ import annotations

import base64
import http.client
import json
import re
import select
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urljoin, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENTS = Path(__file__).parents[1] / "clients"
PATIENCE = 60.0
CLIENT_ID, CLIENT_SECRET = "pailot", "s3cret/with:odd+signs"
ENABLE = "single sign-on is not tested against a real provider; enable that with: make node"


class Key:
    """A key of a provider, and its public half as the provider tells it."""

    def __init__(self, kid: str) -> None:
        self.kid = kid
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def public_jwk(self) -> dict[str, Any]:
        made = jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**made, "kid": self.kid, "use": "sig", "alg": "RS256"}

    def private_jwk(self) -> dict[str, Any]:
        made = jwt.algorithms.RSAAlgorithm.to_jwk(self.private, as_dict=True)
        made.pop("key_ops", None)
        return {**made, "kid": self.kid, "use": "sig", "alg": "RS256"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class RealProvider:
    """`oidc-provider` in a Node.js process; everybody's password is right."""

    def __init__(self, folder: Path, *, userinfo: bool = False) -> None:
        node = shutil.which("node")
        if node is None or not (CLIENTS / "node_modules" / "oidc-provider").is_dir():
            pytest.skip(ENABLE)
        self._node, self._folder, self._userinfo = node, folder, userinfo
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self._users: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None
        self._redirects: list[str] = []

    def user(self, name: str, *groups: str, **claims: Any) -> None:
        """A person at the provider, from the next sign-in on."""
        self._users[name] = {"preferred_username": name, "groups": list(groups), "email": f"{name}@example.org", **claims}
        (self._folder / "users.json").write_text(json.dumps(self._users))

    def start(self, *redirects: str, kid: str = "first") -> None:
        """Start it, with a fresh key; `redirects` are the addresses that the client has registered."""
        self._redirects = list(redirects) or self._redirects
        told = {
            "issuer": self.issuer,
            "port": self.port,
            "users": str(self._folder / "users.json"),
            "userinfo": self._userinfo,
            "keys": [Key(kid).private_jwk()],
            "clients": [{"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "redirect_uris": self._redirects}],
        }
        file = self._folder / "provider.json"
        file.write_text(json.dumps(told))
        with open(self._folder / "provider.log", "a") as log:
            self._process = subprocess.Popen(
                [self._node, CLIENTS / "oidc-provider.mjs", file], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout
        assert select.select([self._process.stdout], [], [], PATIENCE)[0], "the provider did not start in time"
        assert self._process.stdout.readline() == "ready\n", (self._folder / "provider.log").read_text()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            assert self._process.stdout
            self._process.stdout.close()
            self._process = None


class Forger:
    """A provider that says whatever a test wants: `token` makes the ID token of the next exchange from the right claims."""

    def __init__(self) -> None:
        self.key = Key("forger")
        self.issuer = ""
        self.nonce = ""
        self.published: list[dict[str, Any]] = [self.key.public_jwk()]
        self.metadata: dict[str, Any] = {}
        self.token: Callable[[dict[str, Any]], str] = self.sign
        self.reply: Callable[[BaseHTTPRequestHandler], bool] = lambda _: False
        """Looks at each request first; True: it has replied."""
        self.asked: list[str] = []
        forger = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                forger._serve(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                forger._serve(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def claims(self, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        right = {
            "iss": self.issuer,
            "sub": "subject-of-mallory",
            "aud": CLIENT_ID,
            "exp": now + 300,
            "iat": now,
            "nonce": self.nonce,
            "preferred_username": "mallory",
        }
        return {**right, **changed}

    def sign(self, claims: Mapping[str, Any], key: Key | None = None) -> str:
        signing = key or self.key
        return jwt.encode(dict(claims), signing.private, "RS256", headers={"kid": signing.kid})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if self.reply(request):
            return
        path = urlsplit(request.path).path
        if path == "/.well-known/openid-configuration":
            places = {"authorization_endpoint": "/auth", "token_endpoint": "/token", "jwks_uri": "/keys"}
            said: Any = {"issuer": self.issuer, **{key: self.issuer + value for key, value in places.items()}, **self.metadata}
        elif path == "/keys":
            said = {"keys": self.published}
        elif path == "/token":
            said = {"access_token": "a", "token_type": "Bearer", "id_token": self.token(self.claims())}
        else:
            request.send_error(404)
            return
        body = json.dumps(said).encode()
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


def unsigned(claims: Mapping[str, Any]) -> str:
    """A token with `alg: none`."""
    return jwt.encode(dict(claims), "", "none")


def signed_with_the_public_key(claims: Mapping[str, Any], key: Key) -> str:
    """HS256 with the text of the public key as the shared secret; PyJWT refuses to make one, so it is made by hand."""
    import hashlib
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    secret = key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "typ": "JWT", "kid": key.kid}, dict(claims)]
    text = ".".join(_base64url(json.dumps(part).encode()) for part in parts)
    return f"{text}.{_base64url(hmac.digest(secret, text.encode(), hashlib.sha256))}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Page:
    """What a browser sees."""

    def __init__(self, address: str, status: int, text: str) -> None:
        self.address, self.status, self.text = address, status, text

    @property
    def fragment(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.address).fragment, keep_blank_values=True))

    @property
    def query(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(urlsplit(self.address).query).items()}


class Browser:
    """Follows redirects, keeps cookies for each host and port, and fills in the forms of `oidc-provider`."""

    def __init__(self) -> None:
        self.cookies: dict[str, dict[str, str]] = {}
        self.history: list[str] = []

    def open(self, address: str, form: Mapping[str, str] | None = None, *, stop: str = "") -> Page:
        """The page at the end of all redirects; those to an address that begins with `stop` are not followed."""
        for _ in range(20):
            self.history.append(address)
            parts = urlsplit(address)
            line = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
            kept = self.cookies.setdefault(parts.netloc, {})
            headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in kept.items())} if kept else {}
            body = urlencode(form).encode() if form is not None else None
            if body is not None:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            line.request("GET" if form is None else "POST", f"{parts.path or '/'}?{parts.query}", body, headers)
            answer = line.getresponse()
            text = answer.read().decode("utf-8", "replace")
            line.close()
            for each in answer.headers.get_all("set-cookie") or ():
                name, _, value = each.partition(";")[0].partition("=")
                kept[name] = value
            place = answer.headers["location"]
            if answer.status not in (301, 302, 303, 307, 308) or place is None:
                return Page(address, answer.status, text)
            address, form = urljoin(address, place), None
            if stop and address.startswith(stop):
                return Page(address, 0, "")
        raise AssertionError(f"too many redirects: {self.history}")

    def sign_in(self, address: str, user: str, *, stop: str = "") -> Page:
        """Open an address, and say at the provider who one is."""
        page = self.open(address, stop=stop)
        for _ in range(3):
            found = re.search(r'<form[^>]* action="([^"]+)"', page.text)
            if found is None:
                break
            prompt = re.search(r'name="prompt" value="(\w+)"', page.text)
            assert prompt, page.text
            form = {"prompt": prompt[1], "login": user, "password": "any"} if prompt[1] == "login" else {"prompt": prompt[1]}
            page = self.open(urljoin(page.address, found[1]), form, stop=stop)
        return page
