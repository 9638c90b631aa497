"""`pailot logs` of a job on a server: whole, or as they grow."""

from __future__ import annotations

import os
import sys

from ...errors import PailotError, suggestion
from ...runfolder.logs import gap_words
from ..main import OK
from ..server_option import job_name, print_json
from .wait_reason import telling_why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from ...client.api import Client

MOST_FOLLOWED = 200
"""Each task that is followed has a connection of its own."""


def logs(args: Namespace, client: Client) -> int:
    job = job_name(client, args.run)
    record = client.record(job)
    if args.attempt is not None and args.attempt != record["attempt"]:
        check_attempt(args, record)
        record["taskRoles"] = client.record(job, args.attempt)["taskRoles"]
    tasks = _tasks(args, record)
    if args.json:
        print_json([_location(args, client, record, *task[:2], number) for task in tasks for number in range(task[2])])
        return OK
    writer = Writer(single=len(tasks) == 1)
    if args.follow:
        with telling_why(client, job):
            follow(args, client, job, record, tasks, writer)
        return OK
    for role, index, count in tasks:
        for number in range(count):
            if args.task_attempt not in (None, number):
                continue
            data = client.log(job, role, index, stream=args.stream, attempt=_attempt(args, record), task_attempt=number)
            writer.write((role, index, number), data)
    writer.finish()
    return OK


def follow(
    args: Namespace, client: Client, job: str, record: dict[str, Any], tasks: list[tuple[str, int, int]], writer: Writer
) -> None:
    """All tasks at once, to the end of the job."""
    if len(tasks) > MOST_FOLLOWED:
        raise PailotError(f"{len(tasks)} tasks are too many to follow at once; name a task: pailot logs -f {job} ROLE 0")
    if len(tasks) == 1:
        _follow_one(args, client, job, record, tasks[0], writer)
        writer.finish()
        return
    from queue import SimpleQueue
    from threading import Thread

    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def follow_one(task: tuple[str, int, int]) -> None:
        try:
            _follow_one(args, client, job, record, task, writer)
            ended.put(None)
        except BaseException as error:  # handed to the main thread, which raises it
            ended.put(error)

    for task in tasks:
        Thread(target=follow_one, args=(task,), daemon=True).start()
    for _ in tasks:
        error = ended.get()
        if error is not None:
            raise error
    writer.finish()


def _follow_one(
    args: Namespace, client: Client, job: str, record: dict[str, Any], task: tuple[str, int, int], writer: Writer
) -> None:
    role, index, _ = task
    only = args.task_attempt is not None
    attempt = _attempt(args, record)
    pieces = client.follow_log(
        job,
        role,
        index,
        stream=args.stream,
        attempt=attempt if only or args.attempt is not None else None,
        task_attempt=args.task_attempt,
        after=f"{attempt}.{args.task_attempt or 0}.0",
    )
    for piece in pieces:
        if piece is not None and piece.missing:
            sys.stderr.write(f"pailot: {gap_words(f'{role}:{index}', piece.missing)}\n")
        if piece is not None:
            writer.write((role, index, (piece.attempt, piece.task_attempt)), piece.text.encode())


class Writer:
    """Writes pieces of logs to standard output: as they are for one task, else in whole lines after `[role:index]`."""

    def __init__(self, *, single: bool) -> None:
        from threading import Lock

        self.single = single
        self.partial: dict[tuple[str, int, object], bytes] = {}
        self.lock = Lock()

    def write(self, source: tuple[str, int, object], data: bytes) -> None:
        with self.lock:
            self._put(data if self.single else b"".join(self._lines(source, data)))

    def finish(self) -> None:
        """What did not end with a line's end."""
        with self.lock:
            for (role, index, _), rest in self.partial.items():
                if rest:
                    self._put(f"[{role}:{index}] ".encode() + rest + b"\n")
            self.partial.clear()

    def _lines(self, source: tuple[str, int, object], data: bytes) -> Iterator[bytes]:
        role, index, _ = source
        *lines, self.partial[source] = (self.partial.get(source, b"") + data).split(b"\n")
        for line in lines:
            yield f"[{role}:{index}] ".encode() + line + b"\n"

    def _put(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]


def check_attempt(args: Namespace, record: dict[str, Any]) -> None:
    if not 0 <= args.attempt <= record["attempt"]:
        raise PailotError(f"--attempt: '{record['name']}' has attempts 0 to {record['attempt']}")


def _tasks(args: Namespace, record: dict[str, Any]) -> list[tuple[str, int, int]]:
    """The tasks that are meant, each with the number of its attempts."""
    roles = record["taskRoles"]
    if args.role is not None and args.role not in roles:
        raise PailotError(f"'{record['name']}' has no role '{args.role}'{suggestion(args.role, roles)}")
    tasks = [
        (name, task["index"], task["attempts"])
        for name, role in roles.items()
        for task in role["tasks"]
        if args.role in (None, name) and args.index in (None, task["index"])
    ]
    if not tasks:
        raise PailotError(f"role '{args.role}' has tasks 0 to {len(roles[args.role]['tasks']) - 1}")
    if args.task_attempt is not None and not args.follow:
        check_task_attempt(args.task_attempt, tasks)
    return tasks


def check_task_attempt(number: int, tasks: list[tuple[str, int, int]]) -> None:
    """`tasks` are roles, indexes and how many attempts each has had."""
    if not any(0 <= number < count for _, _, count in tasks):
        most = max(count for _, _, count in tasks)
        which = "these tasks have" if len(tasks) > 1 else f"{tasks[0][0]}:{tasks[0][1]} has"
        raise PailotError(f"--task-attempt: {which} {f'attempts 0 to {most - 1}' if most else 'no attempt yet'}")


def _attempt(args: Namespace, record: dict[str, Any]) -> int:
    return int(args.attempt if args.attempt is not None else record["attempt"])


def _location(args: Namespace, client: Client, record: dict[str, Any], role: str, index: int, number: int) -> dict[str, Any]:
    """Where a log is: the file on the machine of the server, and its address."""
    task = next(each for each in record["taskRoles"][role]["tasks"] if each["index"] == index)
    folder = os.path.dirname(os.path.dirname(task["logs"][args.stream]))
    attempt = _attempt(args, record)
    address = client._log_path(f"{record['user']}~{record['name']}", role, index, args.stream, attempt, number)
    return {
        "role": role,
        "index": index,
        "attempt": attempt,
        "taskAttempt": number,
        "path": f"{folder}/{number}/{args.stream}",
        "url": f"{client.server}/api/v2{address}",
    }
