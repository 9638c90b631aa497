"""The engine `openpai`: a job is handed to another server as a whole, and followed from here.

The server applies the completion policy and retries; the driver takes its verdict over (`decided`). The job's name there is
ours with the id of the run, so that the same job can run again, and a submission be repeated. `remote.json` in the attempt's
folder says where it is: the next driver of the run goes on from there.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections import deque

from ...client.credentials import chosen, normal
from ...lifecycle.completion import Outcome, Verdict, outcome_of_stop
from ...lifecycle.states import FAILED, STOPPED, TIMEOUT, UNKNOWN
from ...planning.environment import PRINT_AT_ONCE
from ...protocol.yaml import parse
from ...protocol.yaml.writer import dump
from ...runfolder import layout
from ...runfolder.atomic_json import write_record
from ...runfolder.engine_records import RemoteJobRecord
from ...runfolder.records import StopRecord
from ...runfolder.stop_reason import claim_stop
from ...settings import Settings
from ..contract import Engine, EngineError, Unreachable
from ..observation import ENDED, Observed
from ..traits import OPENPAI
from .local_copy import LocalCopy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ...client.api import Client
    from ..contract import Attempt, EngineContext, Steps
    from .follower import Follower

LONGEST_NAME = 200


class Away(Unreachable):
    """The server cannot be reached, and there is no reason to wait for it."""


class OpenpaiEngine(Engine):
    """Hands attempts to another server."""

    name = "openpai"
    traits = OPENPAI

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        self._told: deque[dict[str, Any]] = deque()
        self._events: list[dict[str, Any]] = []
        self._ended: list[Observed] = []
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._follower: Follower | None = None
        self._verdict: Verdict | None = None
        self._error: Exception | None = None
        self._submitted: dict[str, Any] | None = None
        self.away = False
        """Whether the server cannot be asked."""
        self._retries: dict[str, int] = {}
        self._patient_until: float | None = None

    # Starting

    def start(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Sequence[str]]:
        from .follower import Follower

        path = os.path.join(attempt.folder, layout.REMOTE)
        known = RemoteJobRecord.read(path)
        text = None
        if known is None or not known.submitted:
            if not attempt.context.source:
                raise EngineError(
                    "its launcher was killed before the job was submitted"
                    if known
                    else "the openpai engine needs the job file, which only pailot run and pailot rerun hand on"
                )
            known = RemoteJobRecord(_name_there(attempt), self._server())
            write_record(path, known.to_json())
            text = _as_sent(attempt.context.source, known.job, attempt.plan.options.environment)
        server = known.server
        os.makedirs(os.path.join(attempt.folder, layout.TASKS), exist_ok=True)
        self._follower = Follower(
            lambda: self._connect(server),
            known.job,
            text,
            {role.name: role.instances for role in attempt.plan.roles.values()},
            LocalCopy(attempt.folder, attempt.context.hidden),
            self._tell,
        )
        self._follower.patience, self._follower.give_up = self.context.patience_seconds, self.context.give_up
        if os.path.exists(os.path.join(attempt.folder, layout.STOP)):
            self._follower.ask_to_stop(now=False)  # a stop was requested before, and may not have reached the server
        self._follower.start()
        while self._submitted is None and self._error is None:
            yield None
            self._drain()
            self._take()
        if self._error is not None:
            self._follower = None
            raise self._error
        self._wake()  # what came along with it has been taken, and is still to be handed out
        if text is not None:
            assert self._submitted is not None
            write_record(path, known.replace(submitted=True, server=self._submitted["server"]).to_json())
            self.context.waiting(f"submitted to {self._submitted['server']} as {self._submitted['job']}")
        return []

    # Watching

    def newly_ended(self, attempt: Attempt) -> Sequence[Observed]:
        self._take()
        ended, self._ended = self._ended, []
        return ended

    def alive(self) -> bool:
        self._take()
        return self._follower is not None and (self._verdict is None or bool(self._ended))

    def changes(self) -> int | None:
        """Readable as long as there may be something that `events` and `newly_ended`, called in this order, have not returned."""
        return self._reader

    def events(self) -> Sequence[Mapping[str, Any]]:
        self._drain()
        self._take()
        events, self._events = self._events, []
        return events

    def decided(self, attempt: Attempt) -> Outcome:
        """How the server says it has ended; it has retried as often as it should."""
        verdict = self._verdict or Verdict(FAILED, "the server has not said how it ended")
        stop = StopRecord.read(os.path.join(attempt.folder, layout.STOP))
        if stop is not None and stop.why == TIMEOUT and verdict.state == STOPPED:
            verdict = outcome_of_stop(TIMEOUT, attempt.plan.options.max_run_seconds).verdict
        return Outcome("stopped", verdict, self._retries)

    # Ending

    def stop(self, attempt: Attempt, grace: float, why: str, *, now: bool = False) -> str:
        standing = claim_stop(attempt.folder, why, grace)
        self._patient_until = time.monotonic() + (0 if now else grace)
        self._lose_patience()
        if self._follower is not None:
            self._follower.ask_to_stop(now=now)
        return standing

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    # Inside

    def _lose_patience(self) -> None:
        """Whoever wants the job stopped waits for an absent server as long as a task may take to stop, not for ever."""
        if self.away and self._patient_until is not None and time.monotonic() >= self._patient_until:
            raise Away("the server cannot be reached, so the job may go on there; pailot wait finds out, and stops it then")

    def _tell(self, event: dict[str, object]) -> None:
        """From the other thread."""
        self._told.append(event)
        self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            pass  # enough wake-up calls are waiting

    def _drain(self) -> None:
        """Only the code that reports changes may take the call: another reader would take it from the driver."""
        try:
            os.read(self._reader, 1 << 16)
        except BlockingIOError:
            pass  # nothing new

    def _take(self) -> None:
        while self._told:
            event = self._told.popleft()
            kind = event["event"]
            if kind == "away":
                self._lose_patience()
            elif kind == "submitted":
                self._submitted = event
            elif kind == "refused":
                self._error = event["error"]
                self._verdict = self._verdict or Verdict(FAILED, str(event["error"]))
            elif kind == "gone":
                self._verdict = Verdict(FAILED, event["reason"])
            elif kind == "over":
                seen = event["seen"]
                reason = seen.reason or f"the server says it is {seen.state}"
                self._retries = dict(seen.retries)
                self._verdict = Verdict(seen.state, reason, seen.role, seen.index, seen.exit_code)
            elif kind == "task-ended":
                self._ended.append(Observed(event["role"], event["index"], ENDED, event["final"]))
            else:
                if kind == "state":
                    self.away = event["state"] == UNKNOWN
                self._events.append(event)

    def _server(self) -> str:
        return _login()[0]

    def _connect(self, server: str) -> Client:
        from ...client.api import Client, find

        address, token, user = _login(server)
        if not token:
            raise EngineError(f"nobody is logged in to {address}: pailot login {address}, or set PAILOT_OPENPAI_TOKEN")
        found = find(address, token, user or _user_in(token))
        return Client(found.server, token, found.user)


def _login(server: str = "") -> tuple[str, str, str]:
    """Address, token and user: of the settings, else of the last login."""
    settings = Settings()
    address = server or (normal(settings["openpai_server"]) if settings["openpai_server"] else "")
    if settings["openpai_token"] and address:
        return address, settings["openpai_token"], ""
    login = chosen(address or None)
    if login is None and address.endswith("/rest-server"):
        login = chosen(address.removesuffix("/rest-server"))
    if login is None:
        raise Unreachable("which server? set PAILOT_OPENPAI_SERVER and PAILOT_OPENPAI_TOKEN, or log in: pailot login ADDRESS")
    return login.server, settings["openpai_token"] or login.token, login.user


def _user_in(token: str) -> str:
    """The user that a token names; the server is asked where it names none."""
    try:
        body = token.split(".")[1]
        return str(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).get("username") or "")
    except (IndexError, ValueError, AttributeError):
        return ""


def _name_there(attempt: Attempt) -> str:
    """Our name and the id of the run: another run of the same job does not collide, and asking twice does no harm."""
    run = os.path.basename(os.path.dirname(os.path.dirname(attempt.folder)))
    return f"{attempt.plan.name[:LONGEST_NAME]}-{run[:8]}"


def _as_sent(text: str, name: str, chosen: Mapping[str, str]) -> str:
    """The job file under its name there. OpenPAI lets Python keep what it prints; the words that change this go before the first
    command of a role, on its line, so that lines and items keep their numbers.
    """
    root = {**parse(text).root, "name": name}
    exports = "".join(
        f'export {key}="${{{key}-{value}}}"; ' for key, value in PRINT_AT_ONCE.items() if key not in chosen
    )  # what the image or the job's own script has set stays
    root["taskRoles"] = {role: _begun_with(exports, node) for role, node in root["taskRoles"].items()}
    return dump(root)


def _begun_with(words: str, role: Mapping[str, Any]) -> dict[str, Any]:
    first, *others = role["commands"]
    return {**role, "commands": [f"{words}{first}", *others]}
