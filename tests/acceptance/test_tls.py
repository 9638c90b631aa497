"""Encrypted connections: `pailot serve --tls-cert --tls-key`, with certificates of an authority of our own."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
from pathlib import Path

import pytest

from pailot.server.tls import BadCertificate, Certificate, certificate, follow
from pailot.testing.runs import job, role
from tests.parts.certificates import Authority

from ..support.servers import Server, submit


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_a_job_over_an_encrypted_connection(tmp_path: Path, authority: Authority) -> None:
    cert, key = authority.issue("first")
    server = Server(tmp_path / "server", PAILOT_TLS_CERT=str(cert), PAILOT_TLS_KEY=str(key))
    try:
        assert server.url.startswith("https://127.0.0.1:")
        stranger = server.home.pailot("login", server.url, "--user", "admin", "--password-file", "/dev/null")
        assert stranger.status == 4, "a certificate of an unknown authority is not believed"
        os.environ["SSL_CERT_FILE"] = str(authority.ca)
        try:
            client = server.client(tmp_path / "client")
        finally:
            del os.environ["SSL_CERT_FILE"]
        client.environment["SSL_CERT_FILE"] = str(authority.ca)
        assert submit(client, job(role("echo over TLS"), name="hidden")).status == 0
        assert client.pailot("wait", "hidden").status == 0
        assert "over TLS" in client.pailot("logs", "hidden").out
    finally:
        server.close()


def test_a_renewed_certificate_is_used_without_a_restart(tmp_path: Path, authority: Authority) -> None:
    cert, key = (shutil.copy(each, tmp_path / name) for each, name in zip(authority.issue("first"), ("c", "k"), strict=True))
    found = certificate(str(cert), str(key))
    assert found is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load(context)
    trust = ssl.create_default_context(cafile=str(authority.ca))

    async def subject(port: int) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        names = dict(pair for part in writer.get_extra_info("peercert")["subject"] for pair in part)
        writer.close()
        await reader.read()
        return str(names["commonName"])

    async def work() -> None:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, family=socket.AF_INET)
        port = server.sockets[0].getsockname()[1]
        following = asyncio.ensure_future(follow(found, context, 0.01))
        assert await subject(port) == "first"
        Path(cert).write_text("broken")
        await asyncio.sleep(0.05)  # a broken file is looked at, and changes nothing
        assert await subject(port) == "first"
        for source, target in zip(authority.issue("second"), (cert, key), strict=True):
            os.replace(source, target)
        async with asyncio.timeout(20):
            while await subject(port) != "second":
                await asyncio.sleep(0.01)
        following.cancel()
        server.close()

    asyncio.run(work())


def test_what_is_no_certificate_is_named(tmp_path: Path, authority: Authority) -> None:
    cert, key = authority.issue("first")
    other = authority.issue("second")[1]
    with pytest.raises(BadCertificate, match=r"cannot read .*nothing: No such file"):
        certificate(str(cert), str(tmp_path / "nothing"))
    with pytest.raises(BadCertificate, match="are no certificate with its key"):
        certificate(str(cert), str(other))
    with pytest.raises(BadCertificate, match="go together"):
        certificate(str(cert), "")
    assert certificate("", "") is None
    assert certificate(str(cert), str(key)) == Certificate(str(cert), str(key))


def test_a_server_beyond_its_machine_without_encryption_warns(tmp_path: Path, authority: Authority) -> None:
    cert, key = authority.issue("first")

    def warned(*options: str, **settings: str) -> bool:
        class Reachable(Server):
            """Listens on all addresses of this machine."""

        Reachable.options = ("--host", "0.0.0.0", *options)  # that is what the test is about
        server = Reachable(tmp_path / "server", **settings)
        server.close()
        log = server.home.folder / "serve.log"
        said = "connections are not encrypted" in log.read_text()
        log.unlink()
        return said

    assert warned()
    assert not warned(PAILOT_TRUSTED_PROXIES="127.0.0.1")
    assert not warned("--tls-cert", str(cert), "--tls-key", str(key))
