"""Log-in to a cluster, over real TLS: each way that a kubeconfig knows shows exactly what it says, and nothing else."""

from __future__ import annotations

import json
import socket
import ssl
import stat
import threading
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pailot.engines.kubernetes.kubeconfig import find_access
from pailot.runtime.kubernetes.access import Access, in_cluster
from pailot.runtime.kubernetes.login_error import LoginError

from .api_server import ApiServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    made = ApiServer(tmp_path)
    yield made
    made.close()


def access_to(tmp_path: Path, text: str, **more: str) -> Access:
    """The access that a kubeconfig of this text gives."""
    (tmp_path / "config").write_text(text)
    return find_access({"KUBECONFIG": str(tmp_path / "config"), **more})


def ask(access: Access, path: str = "/version") -> int:
    """One request; tries once more when the log-in could be renewed."""
    status = 401
    for _ in range(2):
        connection = access.connect(5)
        connection.request("GET", path)
        with connection.getresponse() as response:
            status = response.status
        connection.close()
        if status != 401 or not access.login.renew():
            break
    return status


def test_a_token(server: ApiServer, tmp_path: Path) -> None:
    access = access_to(tmp_path, server.kubeconfig({"token": "abc"}))
    assert ask(access) == 200
    assert (server.requests[0]["token"], server.requests[0]["client"]) == ("abc", "")
    assert (access.namespace, access.context) == ("team", "here")
    assert "abc" not in repr(access)


def test_a_token_file_is_read_again_for_each_request(server: ApiServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    access = access_to(tmp_path, server.kubeconfig({"tokenFile": "token"}))
    connection = access.connect(5)
    for text in ("first", "second"):
        token.write_text(text)
        connection.request("GET", "/version")
        connection.getresponse().read()
    connection.close()
    assert [each["token"] for each in server.requests] == ["first", "second"]


def test_a_token_that_was_rotated_meanwhile_is_worth_another_try(server: ApiServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    access = access_to(tmp_path, server.kubeconfig({"tokenFile": str(token)}))
    server.refused = {"old"}
    assert ask(access) == 401
    assert len(server.requests) == 1  # nothing has changed
    connection = access.connect(5)
    connection.request("GET", "/version")
    assert connection.getresponse().status == 401
    connection.close()
    token.write_text("new")
    assert access.login.renew()
    assert ask(access) == 200


@pytest.mark.parametrize("kind", ["data", "files"])
def test_a_client_certificate(server: ApiServer, tmp_path: Path, kind: str) -> None:
    certificate, key = server.authority.issue("alice")
    (tmp_path / "alice.crt").write_text(certificate)
    (tmp_path / "alice.key").write_text(key)
    user = {"client-certificate": "alice.crt", "client-key": str(tmp_path / "alice.key")}
    if kind == "data":
        user = {f"{name}-data": b64encode((tmp_path / Path(file).name).read_bytes()).decode() for name, file in user.items()}
    (tmp_path / "ca.crt").write_text(server.authority.pem)
    text = server.kubeconfig(user, **{"certificate-authority-data": None, "certificate-authority": "ca.crt"})
    assert ask(access_to(tmp_path, text)) == 200
    assert server.requests[0]["client"] == "alice"


def plugin(tmp_path: Path, *printed: dict[str, Any], version: str = "v1", name: str = "plugin") -> dict[str, Any]:
    """A program that prints one credential after the other, and remembers how it was called."""
    group = f"client.authentication.k8s.io/{version}"
    for number, status in enumerate(printed):
        credential = {"apiVersion": group, "kind": "ExecCredential", "status": status}
        (tmp_path / f"{name}.{number}.json").write_text(json.dumps(credential))
    program = tmp_path / name
    program.write_text(
        f'#!/bin/sh\ncd "{tmp_path}"\nprintf "%s\\n" "$KUBERNETES_EXEC_INFO" "$MORE" "$*" >>{name}.calls\n'
        f"n=$(ls {name}.[0-9]*.json | sort -n | head -n 1)\ncat $n\n[ $(ls {name}.*.json | wc -l) = 1 ] || rm $n\n"
    )
    program.chmod(0o755)
    command = {"apiVersion": group, "command": f"./{name}", "args": ["get", "token"], "env": [{"name": "MORE", "value": "yes"}]}
    return {"exec": {**command, **({"interactiveMode": "Never"} if version == "v1" else {})}}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_program_that_prints_a_token(server: ApiServer, tmp_path: Path, version: str) -> None:
    access = access_to(tmp_path, server.kubeconfig(plugin(tmp_path, {"token": "from-plugin"}, version=version)))
    assert (ask(access), ask(access)) == (200, 200)
    assert [each["token"] for each in server.requests] == ["from-plugin"] * 2
    info, more, arguments = (tmp_path / "plugin.calls").read_text().splitlines()  # called once
    assert json.loads(info) == {
        "kind": "ExecCredential",
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "spec": {"interactive": False},
    }
    assert (more, arguments) == ("yes", "get token")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_program_that_prints_a_certificate(server: ApiServer, tmp_path: Path, version: str) -> None:
    certificate, key = server.authority.issue("from-plugin")
    status = {"clientCertificateData": certificate, "clientKeyData": key}
    assert ask(access_to(tmp_path, server.kubeconfig(plugin(tmp_path, status, version=version)))) == 200
    assert (server.requests[0]["client"], server.requests[0]["token"]) == ("from-plugin", "")


def test_a_credential_is_kept_until_it_expires(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    soon, later = "2030-01-01T00:00:10Z", "2030-01-01T01:00:00.123456789+00:00"
    user = plugin(tmp_path, {"token": "one", "expirationTimestamp": soon}, {"token": "two", "expirationTimestamp": later})
    access = access_to(tmp_path, server.kubeconfig(user))
    for seconds in (0, 8, 9, 3000):
        monkeypatch.setattr("pailot.engines.kubernetes.exec_login._now", lambda seconds=seconds: now + timedelta(seconds=seconds))
        assert ask(access) == 200
    assert [each["token"] for each in server.requests] == ["one", "one", "two", "two"]


def test_the_program_runs_again_when_the_api_refuses(server: ApiServer, tmp_path: Path) -> None:
    server.refused = {"one"}
    access = access_to(tmp_path, server.kubeconfig(plugin(tmp_path, {"token": "one"}, {"token": "two"})))
    assert ask(access) == 200
    assert [each["token"] for each in server.requests] == ["one", "two"]


def test_a_program_may_want_to_know_the_cluster(server: ApiServer, tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "t"})
    user["exec"]["provideClusterInfo"] = True
    extension = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}]
    assert ask(access_to(tmp_path, server.kubeconfig(user, extensions=extension))) == 200
    told = json.loads((tmp_path / "plugin.calls").read_text().splitlines()[0])["spec"]["cluster"]
    assert told == {
        "server": f"https://127.0.0.1:{server.port}",
        "certificate-authority-data": b64encode(server.authority.pem.encode()).decode(),
        "config": {"audience": "me"},
    }


def exec_user(command: str, **more: Any) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": command, "interactiveMode": "Never", **more}}


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            exec_user("no-such-program", installHint="get it from\nyour cloud"),
            "No such file or directory; get it from your cloud",
        ),
        (exec_user("sh", args=["-c", "echo 'session over' >&2; exit 3"]), "'u', ended with status 3: session over"),
        (exec_user("echo", args=["tell-no-one"]), "printed no JSON"),
        (exec_user("echo", args=["[1]"]), "printed no ExecCredential"),
        (exec_user("sh", interactiveMode="Always"), "at a terminal only"),
    ],
)
def test_a_program_that_fails_is_told_in_one_line(server: ApiServer, tmp_path: Path, user: Any, message: str) -> None:
    access = access_to(tmp_path, server.kubeconfig(user))
    with pytest.raises(LoginError, match="u") as caught:
        ask(access)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "tell-no-one" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, "neither a token nor a certificate"),
        ({"token": 5}, "is not a text"),
        ({"clientCertificateData": "x"}, "without its key"),
        ({"token": "x", "expirationTimestamp": "tomorrow"}, "no time with a zone"),
        ({"token": "x", "expirationTimestamp": "2030-01-01T00:00:00"}, "no time with a zone"),
    ],
)
def test_a_credential_that_is_none_is_refused(server: ApiServer, tmp_path: Path, status: Any, message: str) -> None:
    with pytest.raises(LoginError, match=message):
        ask(access_to(tmp_path, server.kubeconfig(plugin(tmp_path, status))))


def test_a_credential_of_another_version_is_refused(server: ApiServer, tmp_path: Path) -> None:
    user = plugin(tmp_path, {"token": "x"}, version="v1beta1")
    user["exec"] |= {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    with pytest.raises(LoginError, match=r"another version than client\.authentication\.k8s\.io/v1"):
        ask(access_to(tmp_path, server.kubeconfig(user)))


def test_the_name_in_the_certificate_may_be_another(tmp_path: Path) -> None:
    server = ApiServer(tmp_path, "api.example.org")
    try:
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(access_to(tmp_path, server.kubeconfig({"token": "t"})))
        assert not server.requests
        assert ask(access_to(tmp_path, server.kubeconfig({"token": "t"}, **{"tls-server-name": "api.example.org"}))) == 200
    finally:
        server.close()


def test_verification_is_left_out_only_where_the_file_says_so(server: ApiServer, tmp_path: Path) -> None:
    without = {"certificate-authority-data": None}
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(access_to(tmp_path, server.kubeconfig({"token": "t"}, **without)))
    insecure = {"insecure-skip-tls-verify": True}
    assert ask(access_to(tmp_path, server.kubeconfig({"token": "t"}, **without, **insecure))) == 200
    with pytest.raises(LoginError, match="keep one of them"):
        access_to(tmp_path, server.kubeconfig({"token": "t"}, **insecure))


def test_impersonation_is_in_every_request(server: ApiServer, tmp_path: Path) -> None:
    user = {"token": "t", "as": "bob", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"Acme.com/Why": ["x", "y"]}}
    access = access_to(tmp_path, server.kubeconfig(user))
    connection = access.connect(5)
    for _ in range(2):
        connection.request("GET", "/version")
        connection.getresponse().read()
    connection.close()
    for request in server.requests:
        assert [(name, value) for name, value in request["headers"] if name.startswith("Impersonate")] == [
            ("Impersonate-User", "bob"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-acme.com%2Fwhy", "x"),
            ("Impersonate-Extra-acme.com%2Fwhy", "y"),
        ]


class ProxyServer:
    """Takes one CONNECT or SOCKS request after the other, and leads it to where it names."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.seen: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            target = self._socks(client) if self.kind == "socks5" else self._http(client)
            there = socket.create_connection(target)
            for source, sink in ((client, there), (there, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _http(self, client: socket.socket) -> tuple[str, int]:
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(1000)
        self.seen.append(head.decode())
        host, _, port = head.split()[1].decode().rpartition(":")
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        return host, int(port)

    def _socks(self, client: socket.socket) -> tuple[str, int]:
        assert client.recv(4) == b"\x05\x02\x00\x02"
        client.sendall(b"\x05\x02")
        self.seen.append(client.recv(100).decode("latin-1"))
        client.sendall(b"\x01\x00")
        asked = client.recv(300)
        client.sendall(b"\x05\x00\x00\x01" + bytes(6))
        return asked[5 : 5 + asked[4]].decode(), int.from_bytes(asked[-2:], "big")

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side has ended

    def close(self) -> None:
        self.listener.close()


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_a_proxy_that_the_file_names(server: ApiServer, tmp_path: Path, kind: str) -> None:
    proxy = ProxyServer(kind)
    try:
        way = {"proxy-url": f"{kind}://me:s%40me@127.0.0.1:{proxy.port}"}
        access = access_to(tmp_path, server.kubeconfig({"token": "secret"}, **way), NO_PROXY="*")
        assert ask(access) == 200
    finally:
        proxy.close()
    assert len(proxy.seen) == 1
    assert "secret" not in proxy.seen[0]  # it goes through the tunnel
    shown = b64encode(b"me:s@me").decode() if kind == "http" else "\x02me\x04s@me"
    assert shown in proxy.seen[0]
    assert "s@me" not in repr(access)


def test_a_proxy_of_the_environment_is_used_but_for_this_machine(tmp_path: Path) -> None:
    text = ApiServer.kubeconfig(_Nowhere(), {"token": "t"}, server="https://api.example.org:6443")  # type: ignore[arg-type]  # no server
    access = access_to(tmp_path, text, HTTPS_PROXY="http://proxy:3128")
    assert str(access.proxy) == "http://proxy:3128"
    assert access_to(tmp_path, text, HTTPS_PROXY="http://proxy:3128", NO_PROXY=".example.org").proxy is None
    here = ApiServer.kubeconfig(_Nowhere(), {"token": "t"})  # type: ignore[arg-type]  # no server
    assert access_to(tmp_path, here, HTTPS_PROXY="http://proxy:3128").proxy is None
    with pytest.raises(LoginError, match="https://, which is not supported; use http:// or socks5://"):
        access_to(tmp_path, text, HTTPS_PROXY="https://proxy:3128")


class _Nowhere:
    """Stands for a server where only the text of a kubeconfig matters."""

    port = 1

    class authority:  # noqa: N801  # stands for an attribute
        pem = "none"


def test_a_path_in_the_address_comes_before_each_target(server: ApiServer, tmp_path: Path) -> None:
    behind = {"server": f"https://127.0.0.1:{server.port}/k8s/clusters/c-1/"}
    assert ask(access_to(tmp_path, server.kubeconfig({"token": "t"}, **behind)), "/api/v1/pods?limit=1") == 200
    assert server.requests[0]["path"] == "/k8s/clusters/c-1/api/v1/pods?limit=1"


def test_a_pod_uses_its_own_account(server: ApiServer, tmp_path: Path) -> None:
    account = tmp_path / "account"
    account.mkdir()
    inside = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.port)}
    assert in_cluster(inside, str(account)) is None
    (account / "ca.crt").write_text(server.authority.pem)
    (account / "namespace").write_text("mine")
    (account / "token").write_text("of-the-pod")
    access = in_cluster(inside, str(account))
    assert access is not None
    assert ask(access) == 200
    assert (access.namespace, server.requests[0]["token"]) == ("mine", "of-the-pod")
    assert in_cluster({}, str(account)) is None


def test_a_key_is_never_in_a_file_that_others_could_read(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without files in memory, too: the temporary one has mode 0600 and is gone afterwards."""
    certificate, key = server.authority.issue("alice")
    user = {"client-certificate-data": certificate, "client-key-data": key}
    access = access_to(tmp_path, server.kubeconfig({name: b64encode(text.encode()).decode() for name, text in user.items()}))
    modes: list[int] = []
    loaded = ssl.SSLContext.load_cert_chain

    def load(self: ssl.SSLContext, path: Any, *rest: Any, **named: Any) -> None:
        modes.append(stat.S_IMODE(Path(path).stat().st_mode))
        loaded(self, path, *rest, **named)

    import os
    import tempfile

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", load)
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    assert ask(access) == 200
    assert modes == [0o600]
    assert set(tmp_path.iterdir()) == before
