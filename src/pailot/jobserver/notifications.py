"""Messages about changes of jobs: to a web address and by e-mail, delivered at least once, in spite of crashes.

Which changes a job's owner wants to hear of stands in the job file (`extras.jobStatusChangeNotification`). A message is
kept in the same transaction as the change itself; whatever cannot be delivered is tried again, ever more seldom.
"""

from __future__ import annotations

import asyncio  # only a server loads this
import os
import smtplib
import time
from email.message import EmailMessage
from http.client import HTTPException
from threading import Thread
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..lifecycle.states import FAILED, RUNNING, STOPPED, SUCCEEDED
from ..lifecycle.waits import capped
from ..runtime import defects
from ..settings import BadSetting
from ..store import StoreError
from .signals import Signal
from .webhooks import MAX_REPLY_BYTES, check_template, message, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any
    from urllib.parse import SplitResult

    from ..settings import Settings
    from ..store.server import JobRecord, Notice, ServerStore
    from .batched_writer import Writer

MAIL, WEBHOOK = "mail", "webhook"
FIRST_DELAY, LONGEST_DELAY = 5.0, 3600.0
GIVE_UP_AFTER = 3 * 24 * 3600.0
TIMEOUT_SECONDS = 20
_EVENTS = {RUNNING: "running", SUCCEEDED: "succeeded", FAILED: "failed", STOPPED: "stopped"}


class Notices:
    """Puts messages into the outbox with the change they tell, and delivers them."""

    def __init__(self, settings: Settings, store: ServerStore, writer: Writer) -> None:
        self.store, self.writer = store, writer
        self.smtp = _address(settings["smtp"], "smtp", ("smtp", "smtps"))
        self.webhook = str(settings["webhook"])
        _address(self.webhook, "webhook", ("http", "https"))
        self.webhook_template = check_template(str(settings["webhook_template"]))
        self._webhook_secret = str(settings["webhook_secret"])
        self.sender = str(settings["mail_from"])
        self.first_delay = FIRST_DELAY
        self._signal = Signal()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Deliver what is there, and what will come; a mail does not wait for a webhook that hangs."""
        ways = ((MAIL, self.smtp), (WEBHOOK, self.webhook))
        self._tasks = [asyncio.get_running_loop().create_task(self._run(kind)) for kind, address in ways if address]

    async def end(self) -> None:
        """Whatever is not delivered yet waits for the next server."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def of_change(self, after: JobRecord, before: JobRecord | None) -> Callable[[], None] | None:
        """What to keep together with a change."""
        if not (self.smtp or self.webhook):
            return None
        events = [event for event in changes(after, before) if event in after.more.get("notify", ())]
        if not events:
            return None

        def keep() -> None:
            now = time.time()
            with self.store.batch() as batch:
                for event in events:
                    payload = _payload(after, event, now)
                    if self.webhook:
                        self.store.outbox.add(after.id, WEBHOOK, payload, now)
                    account = self.store.accounts.user(after.user) if self.smtp else None
                    if account is not None and account.email:
                        self.store.outbox.add(after.id, MAIL, {**payload, "to": account.email}, now)
                batch.when_kept(self._wake)  # not before: who looks too early finds nothing, and waits

        return keep

    def _wake(self) -> None:
        try:
            self.writer.loop.call_soon_threadsafe(self._signal.ring)
        except RuntimeError:
            pass  # the server has ended; the next one delivers

    async def _run(self, kind: str) -> None:
        while True:
            seen = self._signal.count
            try:
                for notice in await asyncio.to_thread(self.store.outbox.due, time.time(), kind):
                    await self._deliver(notice)
                due = await asyncio.to_thread(self.store.outbox.next_due, kind)
            except StoreError:
                due = time.time() + FIRST_DELAY
            except Exception as error:  # as below
                defects.note(error, "notices")
                due = time.time() + FIRST_DELAY
            if due is not None and due <= time.time():
                continue
            try:
                await asyncio.wait_for(self._signal.wait(seen), None if due is None else capped(due - time.time()))
            except TimeoutError:
                pass

    async def _deliver(self, notice: Notice) -> None:
        try:
            await _aside(self._mail if notice.kind == MAIL else self._post, notice.payload)
        except Exception as error:  # whatever is wrong with this message, the others are delivered
            now, words = time.time(), str(error)
            if not isinstance(error, OSError | ValueError):
                words = defects.note(error, f"a notice about {notice.job}")
            if now - notice.created < GIVE_UP_AFTER:
                delay = min(LONGEST_DELAY, self.first_delay * 2.0 ** min(notice.attempts, 30))
                await self.writer.do(lambda: self.store.outbox.failed(notice.number, words, now + delay))
                return
        await self.writer.do(lambda: self.store.outbox.done(notice.number))

    def _post(self, payload: Mapping[str, Any]) -> None:
        made = message(self.webhook_template, self.webhook, self._webhook_secret, payload, _line(payload), time.time())
        request = Request(made.address, made.body, made.headers)  # noqa: S310  # http or https, as the settings were checked
        try:
            with build_opener(_no_redirects()).open(request, timeout=TIMEOUT_SECONDS) as reply:
                refused = refusal(self.webhook_template, reply.read(MAX_REPLY_BYTES))
        except HTTPError as error:
            error.close()
            raise OSError(f"the webhook answers with status {error.code}") from None
        except HTTPException as error:
            raise OSError(f"the webhook's answer makes no sense: {error!r}") from None
        if refused:
            raise OSError(f"the webhook refuses: {refused}")

    def _mail(self, payload: Mapping[str, Any]) -> None:
        assert self.smtp is not None
        message = EmailMessage()
        message["From"] = self.sender or f"pailot@{self.smtp.hostname}"
        message["To"] = payload["to"]
        message["Subject"] = f"Job {payload['job']} {_VERBS[payload['event']]}"
        message.set_content(_text(payload))
        kind = smtplib.SMTP_SSL if self.smtp.scheme == "smtps" else smtplib.SMTP
        try:
            # Our name is given, since to look it up may take as long as a name server does not answer.
            with kind(self.smtp.hostname or "", self.smtp.port or 0, os.uname().nodename, timeout=TIMEOUT_SECONDS) as server:
                if self.smtp.username:
                    if self.smtp.scheme == "smtp" and server.has_extn("starttls"):
                        server.starttls()
                    server.login(unquote(self.smtp.username), unquote(self.smtp.password or ""))
                server.send_message(message)
        except smtplib.SMTPException as error:
            raise OSError(f"the mail server refuses: {error}") from None


def _no_redirects() -> Any:
    """A message goes where the setting says, and nowhere else: not as a GET, not to a place inside our own network."""

    class Refusing(HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None  # the answer counts as a failure then

    return Refusing()


async def _aside(work: Callable[[Mapping[str, Any]], None], payload: Mapping[str, Any]) -> None:
    """In a thread that does not delay the end of the server, since the other side may let it hang."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def answer(error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error = None
        try:
            work(payload)
        except Exception as raised:  # it is handed on
            error = raised
        try:
            loop.call_soon_threadsafe(answer, error)
        except RuntimeError:
            pass  # the server has ended; the next one tries again

    Thread(target=run, name="pailot-notice", daemon=True).start()
    await done


_VERBS = {
    "running": "is running",
    "succeeded": "has succeeded",
    "failed": "has failed",
    "stopped": "was stopped",
    "retried": "is tried again",
}


def changes(after: JobRecord, before: JobRecord | None) -> list[str]:
    """What a change means to the job's owner, in OpenPAI's words."""
    found = []
    if before is not None and after.retries > before.retries:
        found.append("retried")
    if (before is None or after.state != before.state) and after.state in _EVENTS:
        found.append(_EVENTS[after.state])
    return found


def _payload(record: JobRecord, event: str, now: float) -> dict[str, object]:
    return {
        "event": event,
        "job": f"{record.user}~{record.name}",
        "name": record.name,
        "user": record.user,
        "state": record.state,
        "virtualCluster": record.vc,
        "exitCode": record.exit_code,
        "reason": record.reason or None,
        "retries": record.retries,
        "submitted": record.submitted,
        "started": record.started,
        "ended": record.ended,
        "at": now,
    }


def _text(payload: Mapping[str, Any]) -> str:
    lines = [f"Your job {payload['name']} {_VERBS[payload['event']]}.", *_details(payload)]
    return "\n".join([*lines, "", f"pailot show {payload['job']} tells more."]) + "\n"


def _line(payload: Mapping[str, Any]) -> str:
    """The notice for a chat: the job with its owner, since all of a team read it."""
    return "\n".join([f"Job {payload['job']} {_VERBS[payload['event']]}.", *_details(payload)])


def _details(payload: Mapping[str, Any]) -> list[str]:
    lines = [f"Why: {payload['reason']}"] if payload["reason"] else []
    return [*lines, f"Retries so far: {payload['retries']}"] if payload["retries"] else lines


def _address(text: str, setting: str, schemes: tuple[str, ...]) -> SplitResult | None:
    if not text:
        return None

    found = urlsplit(text)
    if found.scheme not in schemes or not found.hostname:
        raise BadSetting(f"{setting}: should begin with {schemes[0]}:// or {schemes[1]}:// and name a host")
    return found
