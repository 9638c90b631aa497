"""`pailot logs RUN [ROLE] [INDEX]`: what tasks printed, also of earlier attempts; -f follows."""

from __future__ import annotations

import os
import sys

from ...errors import PailotError, suggestion
from ...loading import current_user
from ...runfolder import layout
from ...runfolder.logs import gap_words
from ..main import OK
from ..server_option import add_server_option, client_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ...userruns.run_folder import JobFolder

ASK_SECONDS = 5
"""So often a cluster is asked about a run that nobody drives."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    parser.add_argument("role", nargs="?", metavar="ROLE")
    parser.add_argument("index", nargs="?", type=int, metavar="INDEX")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run is over")
    parser.add_argument("--stream", choices=("all", "stdout", "stderr"), default="all")
    parser.add_argument("--attempt", type=int, metavar="N", help="attempt of the job (default: the last)")
    parser.add_argument("--task-attempt", type=int, metavar="K", help="attempt of the task (default: all)")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print where the logs are, as JSON")


def run(args: Namespace) -> int:
    client = client_of(args)
    if client is not None:
        from ..remote import logs

        return logs.logs(args, client)
    from ...userruns.queries import find, task_attempts

    row, folder = find(args.run, current_user())
    roles = folder.plan().get("taskRoles", {})
    if args.role is not None and roles and args.role not in roles:
        raise PailotError(f"'{row.name}' has no role '{args.role}'{suggestion(args.role, roles)}")
    attempt = args.attempt if args.attempt is not None else max(0, folder.attempts() - 1)
    if folder.attempts() and not 0 <= attempt < folder.attempts():
        raise PailotError(f"--attempt: '{row.name}' has attempts 0 to {folder.attempts() - 1}")
    tasks = [
        (name, index)
        for name, role in roles.items()
        for index in range(role["instances"])
        if args.role in (None, name) and args.index in (None, index)
    ]
    if not roles:
        kept = f"their logs are below {folder.file(layout.ATTEMPTS)}"
        raise PailotError(f"{folder.file(layout.PLAN)} is damaged or missing, so that its tasks are not known; {kept}")
    if not tasks:
        raise PailotError(f"role '{args.role}' has tasks 0 to {roles[args.role]['instances'] - 1}")
    if args.task_attempt is not None and not args.follow:
        from ..remote.logs import check_task_attempt

        check_task_attempt(args.task_attempt, [(*task, task_attempts(folder, attempt, *task)) for task in tasks])
    if args.json:
        import json

        found = [
            {
                "role": role,
                "index": index,
                "attempt": attempt,
                "taskAttempt": number,
                "path": os.path.join(_folder(folder, attempt, role, index, number), args.stream),
                "url": None,
            }
            for role, index in tasks
            for number in range(task_attempts(folder, attempt, role, index))
        ]
        print(json.dumps(found, indent=2))
        return OK
    follower = Follower(folder, attempt, tasks, args.stream, args.task_attempt)
    follower.print_new()
    if args.follow:
        follower.follows_retries = args.attempt is None
        follower.follow()
        follower.next_attempt()
    follower.print_new(last=True)
    return OK


class Follower:
    """Prints several logs as they grow."""

    def __init__(self, folder: JobFolder, attempt: int, tasks: list[tuple[str, int]], stream: str, only: int | None) -> None:
        self.folder, self.attempt, self.tasks, self.stream, self.only = folder, attempt, tasks, stream, only
        self.sources: dict[tuple[str, int, int], object] = {}
        self.follows_retries = False
        self.asked = 0.0

    def print_new(self, *, last: bool = False) -> None:
        from ...userruns.queries import task_attempts
        from ..foreground_view import Source

        for role, index in self.tasks:
            for number in range(task_attempts(self.folder, self.attempt, role, index)):
                if self.only not in (None, number):
                    continue
                key = (role, index, number)
                if key not in self.sources:
                    prefix = b"" if len(self.tasks) == 1 else f"[{role}:{index}] ".encode()
                    self.sources[key] = Source(_folder(self.folder, self.attempt, role, index, number), self.stream, prefix, 1)
                source = self.sources[key]
                assert isinstance(source, Source)
                while data := source.read(last=last):
                    self._tell_gap(role, index, source.take_missing())
                    while data:
                        data = data[os.write(1, data) :]
                self._tell_gap(role, index, source.take_missing())

    def _tell_gap(self, role: str, index: int, missing: int) -> None:
        if missing:
            sys.stderr.write(f"pailot: {gap_words(f'{role}:{index}', missing)}\n")

    def next_attempt(self) -> None:
        """When the job is tried again, its new attempt is followed."""
        while self.follows_retries and self.folder.attempts() - 1 > self.attempt:
            self.print_new(last=True)
            self.attempt += 1
            self.sources.clear()

    def _lives(self) -> bool:
        """Whether there may be more to come: somebody drives the run, or it goes on without."""
        if self.folder.is_driven():
            return True
        import time

        from ...userruns.queries import recover
        from ...userruns.reattach import goes_on

        if not goes_on(self.folder):
            return False
        if time.monotonic() >= self.asked + ASK_SECONDS:
            self.asked = time.monotonic()
            recover(self.folder)
        return self.folder.verdict() is None

    def follow(self) -> None:
        """Until the run is over; woken by the kernel when a log grows."""
        from ...userruns.inotify import Watch

        watch = Watch()
        while self.folder.verdict() is None and self._lives():
            self.next_attempt()
            watch.add(self.folder.path)
            for role, index in self.tasks:
                path = self.folder.task(self.attempt, role, index)
                watch.add(path)
                attempts = os.path.join(path, layout.ATTEMPTS)
                watch.add(attempts)
                for name in os.listdir(attempts) if os.path.isdir(attempts) else ():
                    watch.add(os.path.join(attempts, name))
            self.print_new()
            watch.wait(1.0)


def _folder(folder: JobFolder, attempt: int, role: str, index: int, number: int) -> str:
    return layout.task_attempt_folder(folder.task(attempt, role, index), number)
