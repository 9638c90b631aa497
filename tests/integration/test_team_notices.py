"""Notices about jobs, received by a real mail server and a real web server."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from pailot.jobserver.notifications import Notices
from pailot.jobserver.service import Team
from pailot.settings import BadSetting, Settings
from pailot.store.server import User
from pailot.testing.runs import job, role, wait_for
from tests.integration.test_team import ANN, Place, place, state

__all__ = ["place"]
NOTIFY = "  jobStatusChangeNotification: {running: true, succeeded: true, failed: true, retried: true, stopped: false}\n"


class Mailbox:
    """A mail server that keeps what it gets."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.refuse = 0
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802  # aiosmtpd's name
        if self.refuse:
            self.refuse -= 1
            return "451 try again later"
        self.messages.append((envelope.rcpt_tos, envelope.content.decode()))
        return "250 OK"


@pytest.fixture
def mailbox() -> Any:
    box = Mailbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        box.port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=box.port)
    controller.start()
    yield box
    controller.stop()


@pytest.fixture
def received() -> Any:
    """A web server that keeps what is posted to it, and refuses the first time."""
    posts: list[dict[str, Any]] = []
    refused: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's name
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not refused:
                refused.append(1)
                self.send_error(503)
                return
            posts.append(json.loads(body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield posts, f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    thread.join()
    server.server_close()


def _text(name: str, script: str, retries: int = 0) -> str:
    return job(role(script), name=name, job_retries=retries).replace("extras:\n", "extras:\n" + NOTIFY)


def test_owners_hear_of_their_jobs_by_mail_and_webhook(place: Place, mailbox: Mailbox, received: Any) -> None:
    posts, address = received
    mailbox.refuse = 1

    async def work(team: Team) -> None:
        team.notices.first_delay = 0.01
        team.store.accounts.add_user(User("ann", "ann@example.com"))
        await team.submit(ANN, _text("good", "true"))
        assert await state(team, "ann~good") == "SUCCEEDED"
        await team.submit(ANN, _text("bad", "exit 7", retries=1))
        assert await state(team, "ann~bad") == "FAILED"
        await team.submit(ANN, job(role("true"), name="quiet"))
        assert await state(team, "ann~quiet") == "SUCCEEDED"
        await asyncio.to_thread(wait_for, lambda: len(posts) >= 5 and len(mailbox.messages) >= 5)
        await asyncio.to_thread(wait_for, lambda: team.store.outbox.next_due() is None)

    place.run(work, PAILOT_SMTP=f"smtp://127.0.0.1:{mailbox.port}", PAILOT_MAIL_FROM="pai@example.com", PAILOT_WEBHOOK=address)
    told = sorted((post["job"], post["event"]) for post in posts)
    assert told == [
        ("ann~bad", "failed"),
        ("ann~bad", "retried"),
        ("ann~bad", "running"),
        ("ann~good", "running"),
        ("ann~good", "succeeded"),
    ]
    (failed,) = [post for post in posts if post["event"] == "failed"]
    assert (failed["exitCode"], failed["state"]) == (7, "FAILED")
    assert all(to == ["ann@example.com"] for to, _ in mailbox.messages)
    subjects = sorted(line for _, text in mailbox.messages for line in text.splitlines() if line.startswith("Subject"))
    assert subjects == [
        "Subject: Job ann~bad has failed",
        "Subject: Job ann~bad is running",
        "Subject: Job ann~bad is tried again",
        "Subject: Job ann~good has succeeded",
        "Subject: Job ann~good is running",
    ]
    assert any("From: pai@example.com" in text and "exited with 7" in text.replace("=\n", "") for _, text in mailbox.messages)


def test_what_could_not_be_delivered_is_delivered_by_the_next_server(place: Place, received: Any) -> None:
    posts, address = received

    async def first(team: Team) -> None:
        await team.submit(ANN, _text("good", "true"))
        assert await state(team, "ann~good") == "SUCCEEDED"
        assert team.store.outbox.next_due() is not None

    async def second(team: Team) -> None:
        team.notices.first_delay = 0.001
        await asyncio.to_thread(team.store.outbox.failed, 1, "again", 0.0)
        await asyncio.to_thread(team.store.outbox.failed, 2, "again", 0.0)
        team.notices._signal.ring()
        await asyncio.to_thread(wait_for, lambda: len(posts) == 2)

    place.run(first, PAILOT_WEBHOOK="http://127.0.0.1:1/nobody")
    place.run(second, PAILOT_WEBHOOK=address)
    assert {post["event"] for post in posts} == {"running", "succeeded"}


def test_a_webhook_that_hangs_keeps_neither_mails_nor_the_end_waiting(place: Place, mailbox: Mailbox) -> None:
    async def work(team: Team) -> None:
        team.store.accounts.add_user(User("ann", "ann@example.com"))
        await team.submit(ANN, _text("good", "true"))
        assert await state(team, "ann~good") == "SUCCEEDED"
        connection, _ = await asyncio.to_thread(silent.accept)
        connections.append(connection)
        await asyncio.to_thread(wait_for, lambda: len(mailbox.messages) == 2)

    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        place.run(work, PAILOT_SMTP=f"smtp://127.0.0.1:{mailbox.port}", PAILOT_WEBHOOK=address)
        (connection,) = connections
        connection.settimeout(0)
        assert connection.recv(65536).startswith(b"POST / ")
        with pytest.raises(BlockingIOError):
            connection.recv(1)  # nobody has hung up: it was not waited for
        connection.close()


def test_a_redirect_is_not_followed(place: Place) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's name
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(f"POST {self.path}")
            self.send_response(302)
            self.send_header("Location", "/inside")
            self.end_headers()

        def do_GET(self) -> None:  # the library's name
            asked.append(f"GET {self.path}")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    async def work(team: Team) -> None:
        await team.submit(ANN, _text("good", "true"))
        await asyncio.to_thread(wait_for, lambda: len(team.store.outbox.failing()) == 2)
        assert "302" in team.store.outbox.failing()[0].error

    place.run(work, PAILOT_WEBHOOK=f"http://127.0.0.1:{server.server_port}/hook")
    server.shutdown()
    thread.join()
    server.server_close()
    assert asked == ["POST /hook"] * 2


@pytest.mark.parametrize(("name", "value"), [("PAILOT_SMTP", "mail.example.com"), ("PAILOT_WEBHOOK", "ftp://x/y")])
def test_an_address_that_makes_no_sense_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadSetting):
        Notices(Settings({name: value}), None, None)  # type: ignore[arg-type]  # not even looked at


def test_a_robot_that_refuses_in_its_reply_is_tried_again(place: Place) -> None:
    posts: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's name
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posts.append((self.path, body))
            said = b'{"errcode":130101,"errmsg":"too fast"}' if len(posts) == 1 else b'{"errcode":0}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None: ...

    async def work(team: Team) -> None:
        team.notices.first_delay = 0.01
        await team.submit(ANN, _text("good", "true"))
        assert await state(team, "ann~good") == "SUCCEEDED"
        await asyncio.to_thread(wait_for, lambda: len(posts) >= 3)
        await asyncio.to_thread(wait_for, lambda: team.store.outbox.next_due() is None)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/robot?access_token=x"
        place.run(work, PAILOT_WEBHOOK=address, PAILOT_WEBHOOK_TEMPLATE="dingtalk", PAILOT_WEBHOOK_SECRET="SEC")
    finally:
        server.shutdown()
        server.server_close()
    assert all("&sign=" in path for path, _ in posts)
    told = {body["text"]["content"].partition("\n")[0] for _, body in posts}
    assert told == {"Job ann~good is running.", "Job ann~good has succeeded."}
