"""`pailot.Run`: one job that was started, here or on a server; everything about it, waiting or not."""

from __future__ import annotations

from ..lifecycle.states import FINAL_JOB_STATES
from ..values import Value
from ..views.base import Which
from ..views.cancellation import Quit
from .errors import JobFailed, JobStopped, WaitTimeout
from .job import without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator, Mapping
    from typing import Any, Literal

    from ..runfolder.log_search import Hit
    from ..views.base import View
    from .job import Job

    Stream = Literal["all", "stdout", "stderr"]


class Event(Value):
    """Something that happened to a run: `kind` is started, task-ended, task-retry, job-retry, waiting, stopping, ended, …"""

    kind: str
    at: float
    role: str | None = None
    index: int | None = None
    details: Mapping[str, Any] = {}

    @property
    def task(self) -> str | None:
        """The task that it happened to, as `role:index`; None if it happened to the whole run."""
        return None if self.role is None else f"{self.role}:{self.index}"


class Result(Value):
    """How a run ended well."""

    name: str
    id: str
    state: str
    exit_code: int | None
    reason: str
    seconds: float
    retries: int
    record: Mapping[str, Any]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields if name != "record")
        return f"Result({shown})"  # the record is long


class Run:
    """A run of a job. Nothing is remembered in the object: each look asks the run's record.

    The run is driven by a process of its own (or the server), so it goes on when this program ends. As a context manager,
    leaving the block waits for its end; leaving it by an exception stops it.

    >>> with pailot.run("job.yaml", unique=True) as run:
    ...     for line in run.logs(follow=True):
    ...         print(line)
    hello
    >>> run.state
    'SUCCEEDED'
    """

    def __init__(self, view: View) -> None:
        self.view = view

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.view.name

    @property
    def id(self) -> str:
        """The id of the run: no other run has it."""
        return self.view.id

    def describe(self) -> dict[str, Any]:
        """All about it, as `pailot show --json` prints."""
        return self.view.record()

    @property
    def state(self) -> str:
        """The state: WAITING, RUNNING, STOPPING, STOPPED, SUCCEEDED, FAILED; UNKNOWN while its engine cannot be reached."""
        return str(self.view.record()["state"])

    @property
    def done(self) -> bool:
        """Whether it is over: its state is SUCCEEDED, FAILED or STOPPED."""
        return self.state in FINAL_JOB_STATES

    @property
    def exit_code(self) -> int | None:
        """The exit code of the task that decided how it ended; None while it is not over."""
        code: int | None = self.view.record().get("exitCode")
        return code

    @property
    def reason(self) -> str:
        """The reason of its state in words; empty if there is none."""
        return self.view.record().get("reason") or ""

    @property
    def job(self) -> Job:
        """The job that runs, without its secrets."""
        return without_secrets(self.view.file())

    # Waiting

    def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> str:
        """Wait until it is over; return its state. Raises WaitTimeout after `timeout` seconds, and the run goes on.

        A progress bar is shown in a notebook and on a terminal, unless `progress` is False.
        """
        return self._wait(timeout, Quit(), progress)

    def _wait(self, timeout: float | None, quit: Quit, progress: bool | None = False) -> str:
        from .display import wanted, watch

        over = watch(self, timeout, quit) if wanted(progress) else self.view.wait(timeout, quit)
        return self._waited(over, timeout)

    def _waited(self, over: bool, timeout: float | None) -> str:
        record = self.view.record()
        if not over and record["state"] not in FINAL_JOB_STATES:
            raise WaitTimeout.of(record, f"{self.name} is still {record['state']} after {timeout:g} s")
        return str(record["state"])

    def result(self, timeout: float | None = None, *, progress: bool | None = False) -> Result:
        """Wait for success. Returns how it ended. Raises JobFailed or JobStopped, with task, exit code, reason and last lines.

        Raises WaitTimeout after `timeout` seconds, and the run goes on.

        >>> run = pailot.run("job.yaml", unique=True)
        >>> run.result(timeout=60).exit_code
        0
        """
        self.wait(timeout, progress=progress)
        return self._result()

    def _result(self) -> Result:
        record = self.view.record()
        if record["state"] == "STOPPED":
            raise JobStopped.of(record)
        if record["state"] != "SUCCEEDED":
            raise JobFailed.of(record)
        began, ended = record.get("started"), record.get("ended")
        return Result(
            name=self.name,
            id=self.id,
            state=record["state"],
            exit_code=record.get("exitCode"),
            reason=record.get("reason") or "",
            seconds=(ended or 0) - (began or ended or 0),
            retries=record.get("retries") or 0,
            record=record,
        )

    async def wait_async(self, timeout: float | None = None) -> str:
        """As `wait`, without blocking the event loop. Returns the state; raises WaitTimeout."""
        from .async_bridge import in_thread, over

        done = await over(self.view, timeout)
        return await in_thread(lambda _: self._waited(done, timeout))

    async def result_async(self, timeout: float | None = None) -> Result:
        """As `result`, without blocking the event loop. Returns the result; raises JobFailed, JobStopped or WaitTimeout."""
        from .async_bridge import in_thread

        await self.wait_async(timeout)
        return await in_thread(lambda _: self._result())

    def __await__(self) -> Generator[Any, None, Result]:
        return self.result_async().__await__()

    # Looking

    def logs(
        self,
        role: str | None = None,
        index: int | None = None,
        follow: bool = False,
        *,
        stream: Stream = "all",
        attempt: int | None = None,
        task_attempt: int | None = None,
        tail: int | None = None,
    ) -> Logs:
        """What tasks printed, as lines: `for line in run.logs("worker", 0, follow=True)`, or `async for`.

        `attempt` is that of the job (0 is the first; by default the latest, and all of them with `follow`), `task_attempt` that
        of the task in it (by default all). `tail` is how many of the last lines of the latest attempt of each task are wanted.
        """
        return Logs(self.view, Which(role, index, stream, attempt, task_attempt, tail=tail), follow)

    def search(
        self,
        pattern: str,
        *,
        regex: bool = False,
        case: bool = False,
        role: str | None = None,
        index: int | None = None,
        limit: int = 1_000,
    ) -> list[Hit]:
        """The lines that hold a text, of all tasks and attempts.

        Each has `role`, `index`, `attempt`, `task_attempt`, `line`, `at` and `text`.
        With `regex` it is a regular expression; with `case`, large and small letters are different. At most `limit` lines.
        Raises PailotError for an expression that cannot be read.
        """
        from ..runfolder.log_search import Hit, Wanted

        found = self.view.search(Wanted(pattern, regex, case, role, index), limit)
        return [each for each in found if isinstance(each, Hit)]

    def usage(self) -> list[dict[str, Any]]:
        """What each task uses now (`now`), its peaks (`peak`) and what it asked for (`asked`), as `pailot top --json` prints it.

        Empty where that is not known, as on the engine `openpai`.
        """
        return self.view.usage()

    def events(self) -> Iterator[Event]:
        """What happened so far, then what happens, until the run is over."""
        return self.changes(Quit())

    def changes(self, quit: Quit) -> Iterator[Event]:
        """The same as `events`, until `quit` is set."""
        return map(_event, self.view.events(quit))

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    async def __aiter__(self) -> AsyncIterator[Event]:
        from .async_bridge import each_in_thread

        async for event in each_in_thread(self.view.events):
            yield _event(event)

    # Acting

    def stop(self, *, now: bool = False, wait: bool = True) -> None:
        """SIGTERM, the grace period, then everything it started is killed; `now` leaves out the grace."""
        self.view.stop(now)
        if wait:
            self.view.wait(None, Quit())

    async def stop_async(self, *, now: bool = False) -> None:
        """As `stop`, without blocking the event loop."""
        from .async_bridge import in_thread

        def stop(quit: Quit) -> None:
            self.view.stop(now)
            self.view.wait(None, quit)

        await in_thread(stop)

    def delete(self) -> None:
        """Remove the record, with its logs; the run must be over."""
        self.view.delete()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.wait(progress=False)
        else:
            self.stop()

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None:
            await self.wait_async()
        else:
            await self.stop_async()

    def __repr__(self) -> str:
        return f"Run({self.name!r}, id={self.id!r}, state={self.state!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def _repr_html_(self) -> str:
        from .display import table

        return table(self.describe())

    def _ipython_display_(self) -> None:
        from .display import display_live

        display_live(self)


class Logs:
    """Lines of one task, or of several with `[role:index] ` before each. `str(logs)` is the whole text so far."""

    def __init__(self, view: View, which: Which, follow: bool) -> None:
        self.view, self._which, self._follow = view, which, follow

    def __iter__(self) -> Iterator[str]:
        return self.until(Quit())

    def until(self, quit: Quit) -> Iterator[str]:
        """The lines, until `quit` is set."""
        return self._lines(quit, self._follow)

    def _lines(self, quit: Quit, follow: bool) -> Iterator[str]:
        alone: bool | None = True if self._which.index is not None else None
        for role, index, text in self.view.lines(self._which, follow, quit):
            if alone is None:  # asked when there is something to print: before it starts, its tasks may not be known
                alone = _tasks(self.view.record(), self._which.role) == 1
            yield text if alone else f"[{role}:{index}] {text}"

    async def __aiter__(self) -> AsyncIterator[str]:
        from .async_bridge import each_in_thread

        async for line in each_in_thread(lambda quit: self._lines(quit, self._follow)):
            yield line

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines(Quit(), False))

    def __repr__(self) -> str:
        return f"Logs(of {self.view.name!r}, role={self._which.role!r}, index={self._which.index!r})"


def _tasks(record: Mapping[str, Any], role: str | None) -> int:
    return sum(len(node["tasks"]) for name, node in record["taskRoles"].items() if role in (None, name))


def _event(entry: Mapping[str, Any]) -> Event:
    rest = {key: value for key, value in entry.items() if key not in ("event", "at", "role", "index")}
    return Event(entry["event"], entry.get("at") or 0.0, entry.get("role"), entry.get("index"), rest)
