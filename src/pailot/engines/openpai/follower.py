"""The thread that talks to the server for one job: submits it, watches it, brings its logs, passes a stop on.

It is told by the server where that can tell (a Pailot), and asks again and again where it cannot, the more often the more
happens. Whatever goes wrong on the way is no end of the job: only the server's word is.
"""

from __future__ import annotations

import threading
import time

from ...client.api import MOST_FOLLOWED
from ...client.errors import NotFound, Refused, Unreachable, WireError
from ...errors import PailotError
from ...lifecycle.states import UNKNOWN, WAITING
from .job_status import read_job
from .remote_logs import OpenpaiLogs, PailotLogs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ...client.api import Client
    from .job_status import JobSeen, TaskSeen
    from .local_copy import LocalCopy

QUICK, SLOW, GROWTH = 0.25, 5.0, 1.5
"""Seconds between two looks: after something has happened, at most, and how they grow."""
TOLD = 15.0
"""The same where the server tells: only in case something was missed."""
GONE_AFTER = 5
"""How often in a row a server must say that it does not know the job before that is believed."""


class Ended(Exception):
    """Nobody wants to know any more."""


class Follower(threading.Thread):
    """Follows one job; tells what it sees by `tell(event)`, from its own thread."""

    def __init__(
        self,
        connect: Callable[[], Client],
        name: str,
        text: str | None,
        roles: Mapping[str, int],
        mirror: LocalCopy,
        tell: Callable[[dict[str, object]], None],
    ) -> None:
        super().__init__(name=f"job {name}", daemon=True)
        self.connect, self.job_name, self.text, self.roles, self.mirror, self.tell = connect, name, text, roles, mirror, tell
        self.poke = threading.Event()
        self.stopping: bool | None = None
        """Whether a stop is to be passed on; True: at once."""
        self.quit = False
        self.live = False
        self.client: Client | None = None
        self._stop_sent: bool | None = None
        self._seen: JobSeen | None = None
        self._claimed: set[tuple[str, int]] = set()
        self._watched: set[tuple[str, int]] = set()
        self._state = self._reason = ""
        self._since: float | None = None
        self.patience: float | None = None
        self.give_up: Callable[[], None] = lambda: None
        self._interval = QUICK

    def run(self) -> None:
        try:
            if self.text is None:
                self.tell({"event": "submitted"})
                client = self._come_back()
            else:
                client = self._submit()
                self.tell({"event": "submitted", "server": client.server, "job": self.job})
            self._follow(client)
        except Ended:
            pass
        except (PailotError, OSError) as error:
            self.tell({"event": "refused", "error": error})
        finally:
            self.quit = True
            if self.client is not None:
                self.client.close()

    def ask_to_stop(self, *, now: bool) -> None:
        self.stopping = now or bool(self.stopping)
        self.poke.set()

    def close(self) -> None:
        """End without a word to the server: the job goes on."""
        self.quit = True
        self.poke.set()

    # The beginning

    def _submit(self) -> Client:
        """Submit the job. Its name is ours alone, so to ask twice does no harm."""
        assert self.text is not None
        client = self._connected()
        for turn in range(4):
            try:
                client.submit(self.text)
                return client
            except Unreachable:
                if turn == 3 or self.quit:
                    raise
                time.sleep(turn)
            except Refused as error:
                if error.status == 409 and turn:
                    return client  # the first time it had arrived
                raise
        return client

    def _come_back(self) -> Client:
        """To a job that was submitted before: until the server responds, nothing is known about it."""
        while True:
            try:
                return self._connected()
            except (PailotError, OSError) as error:
                self._away(str(error))

    def _connected(self) -> Client:
        client = self.client = self.connect()
        self.job = f"{client.user}~{self.job_name}"
        return client

    def _away(self, reason: str) -> None:
        """The server cannot be asked: the state is unknown, and is asked for again after a while."""
        self._tell_state(UNKNOWN, reason)
        self.tell({"event": "away"})
        self._since = self._since or time.monotonic()
        if self.patience is not None and time.monotonic() - self._since > self.patience:
            self.give_up()
        self.poke.wait(self._interval)
        self.poke.clear()
        self._interval = min(SLOW, max(1.0, self._interval * GROWTH))
        if self.quit:
            raise Ended

    # The job

    def _follow(self, client: Client) -> None:
        gone = 0
        logs = self._kind_of_logs(client)
        while True:
            self.poke.clear()
            if self.quit:
                raise Ended
            try:
                self._pass_stop_on(client)
                seen = read_job(client.job(self.job), self.roles)
                gone = 0
                changed = self._tell_of(seen, logs)
                changed |= self._fetch(seen, logs)
                if seen.is_final:
                    self._finish(client, seen, logs)
                    return
                self._tell_state(seen.state, self._why(client, logs) if seen.state == WAITING else "")
                self._interval = QUICK if changed else min(SLOW, self._interval * GROWTH)
            except NotFound as error:
                gone += 1
                if gone >= GONE_AFTER:
                    self.tell({"event": "gone", "reason": f"the server does not know it any more: {error}"})
                    return
                self._interval = 1.0
            except (WireError, OSError) as error:
                self._away(str(error))
                continue
            self._since = None
            self.poke.wait(max(TOLD, self._interval) if self._is_told() else self._interval)

    def _is_told(self) -> bool:
        return self.live and len(self.roles) > 0 and sum(self.roles.values()) <= MOST_FOLLOWED and self._state != UNKNOWN

    def _kind_of_logs(self, client: Client) -> PailotLogs | OpenpaiLogs:
        """A Pailot server has records; a server that does not know them is an OpenPAI."""
        while True:
            try:
                client.record(self.job)
            except NotFound as error:
                if error.code == "NoJobError":
                    return PailotLogs(client, self.job)
                return OpenpaiLogs(client, self.job)
            except Refused:
                return OpenpaiLogs(client, self.job)
            except Unreachable as error:
                self._away(str(error))
                continue
            threading.Thread(target=self._listen, args=(client,), daemon=True, name=f"events of {self.job}").start()
            return PailotLogs(client, self.job)

    def _listen(self, client: Client) -> None:
        """Have the other thread look whenever the server says that something has happened."""
        self.live = True
        try:
            for _ in client.live(self.job, patience=float("inf")):
                self.poke.set()
                if self.quit:
                    return
        except WireError:
            pass  # then it is asked
        finally:
            self.live = False
            self.poke.set()

    def _pass_stop_on(self, client: Client) -> None:
        wanted = self.stopping
        if wanted is None or self._stop_sent == wanted or self._stop_sent:
            return
        try:
            client.stop(self.job, now=wanted)
        except Refused:
            if not wanted:
                raise
            client.stop(self.job)  # an OpenPAI knows no 'at once'
        self._stop_sent = wanted

    def _tell_state(self, state: str, reason: str) -> None:
        if (state, reason) != (self._state, self._reason) and (state != UNKNOWN or state != self._state):
            self._state, self._reason = state, reason
            self.tell({"event": "state", "state": state, "reason": reason})

    def _why(self, client: Client, logs: PailotLogs | OpenpaiLogs) -> str:
        """What a job waits for; an OpenPAI does not say."""
        return " ".join(client.why(self.job)["lines"]) if isinstance(logs, PailotLogs) else ""

    def _tell_of(self, seen: JobSeen, logs: PailotLogs | OpenpaiLogs) -> bool:
        """What is new since the last look."""
        before, self._seen = self._seen, seen
        first = before.attempt if before is not None else 0
        if seen.attempt > first:
            self._catch_up(first, seen.attempt, logs)
            if before is not None:
                self.tell({"event": "job-retry", "attempt": seen.attempt, "reason": "the attempt failed"})
        if before == seen:
            return False
        self.mirror.place(seen)
        attempts = {(task.job_attempt, task.role, task.index): task.task_attempt for task in before.tasks} if before else {}
        for task in seen.tasks:
            if task.state == WAITING and not task.task_attempt:
                continue
            if (task.role, task.index) not in self._claimed:
                self._claimed.add((task.role, task.index))
                self.tell({"event": "claimed", "role": task.role, "index": task.index})
            if task.task_attempt > attempts.get((task.job_attempt, task.role, task.index), task.task_attempt):
                told = {"role": task.role, "index": task.index, "attempt": task.task_attempt}
                self.tell({"event": "retry", **told, "of": task.task_attempt, "seconds": 0.0, "reason": "failed on the server"})
            self._watch(task, logs)
        return True

    def _catch_up(self, first: int, last: int, logs: PailotLogs | OpenpaiLogs) -> None:
        """Attempts of the job that have come and gone between two looks."""
        assert self.client is not None
        for attempt in range(first, last):
            seen = read_job(self.client.job(self.job, attempt), self.roles)
            tasks = tuple(task.replace(job_attempt=attempt) for task in seen.tasks)
            self.mirror.place(seen.replace(attempt=attempt, tasks=tasks))
            for task in tasks:
                self._fetch_task(task, logs, last=True)
                self.mirror.finish(task, {})

    def _watch(self, task: TaskSeen, logs: PailotLogs | OpenpaiLogs) -> None:
        """Follow the log of a task, only to be told that there is something to fetch."""
        key = (task.role, task.index)
        if key in self._watched or not isinstance(logs, PailotLogs) or sum(self.roles.values()) > MOST_FOLLOWED:
            return
        self._watched.add(key)
        threading.Thread(target=self._watch_log, args=(task,), daemon=True, name=f"log of {task.role}:{task.index}").start()

    def _watch_log(self, task: TaskSeen) -> None:
        assert self.client is not None
        try:
            for _ in self.client.follow_log(self.job, task.there, task.index, patience=float("inf")):
                self.poke.set()
                if self.quit:
                    return
        except WireError:
            pass  # it is fetched anyway, a little later

    # Logs

    def _fetch(self, seen: JobSeen, logs: PailotLogs | OpenpaiLogs) -> bool:
        grown = False
        for task in seen.tasks:
            grown |= self._fetch_task(task, logs, last=False)
        return grown

    def _fetch_task(self, task: TaskSeen, logs: PailotLogs | OpenpaiLogs, *, last: bool) -> bool:
        """What is new in the logs of all attempts of a task; those before the latest do not grow any more."""
        if task.state == WAITING and not task.task_attempt:
            return False
        grown = False
        for number in range(task.task_attempt + 1):
            kept = self.mirror.logs(task.job_attempt, task.role, task.index, number)
            if kept.complete:
                continue
            new = logs.fetch(task.there, task.index, task.job_attempt, number, kept)
            if last or number < task.task_attempt:
                new |= logs.flush(kept)
                kept.complete = True
            if new:
                grown = True
                told = {"role": task.role, "index": task.index, "attempt": number, "jobAttempt": task.job_attempt}
                self.tell({"event": "grown", **told})
        return grown

    # The end

    def _finish(self, client: Client, seen: JobSeen, logs: PailotLogs | OpenpaiLogs) -> None:
        """The server says that it is over. Nothing is told before every byte is here."""
        record: dict[str, Any] = {}
        if isinstance(logs, PailotLogs):
            record = client.record(self.job)
            seen = seen.replace(reason=record.get("reason") or seen.reason, exit_code=record.get("exitCode"))
        else:
            self.poke.wait(QUICK)  # its log service may lag behind a little
        for task in seen.tasks:
            self._fetch_task(task, logs, last=True)
        for task in seen.tasks:
            if task.is_final:
                known = (record.get("taskRoles") or {}).get(task.role, {}).get("tasks", [])
                exact: dict[str, object] = next((each for each in known if each["index"] == task.index), {})
                final = self.mirror.finish(task, exact)
                self.tell({"event": "task-ended", "role": task.role, "index": task.index, "final": final})
        self.tell({"event": "over", "seen": seen})
