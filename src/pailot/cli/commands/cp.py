"""`pailot cp RUN:ROLE:INDEX/path DEST` and back: files and folders of a task."""

from __future__ import annotations

import os
import re

from ...data.task_files import Files as Below
from ...errors import PailotError
from ...progress import display
from ...runfolder import layout
from ...runtime.shim import read_environment
from ...settings import current_user
from ...userruns.queries import find
from ...userruns.task_access import locate
from ...values import Value
from ..copying import download, packed, upload
from ..main import OK
from ..server_option import add_server_option, client_of, job_name, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import IO

    from ...client.api import Client
    from ..copying import Files

_TASK = re.compile(r"(?P<run>[^:/]+):(?P<role>[A-Za-z0-9_.-]+):(?P<index>[0-9]{1,6})(?:/(?P<path>.*))?", re.DOTALL)


class TaskPath(Value):
    """A place in a task."""

    run: str
    role: str
    index: int
    path: str


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a path, or RUN:ROLE:INDEX/PATH")
    parser.add_argument("target", metavar="TARGET", help="a path, or RUN:ROLE:INDEX/PATH")
    add_server_option(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print what was copied as JSON")


def run(args: Namespace) -> int:
    source, target = parse(args.source), parse(args.target)
    if (source is None) == (target is None):
        raise PailotError("one of the two should be a place in a task, RUN:ROLE:INDEX/PATH, and the other a path of this machine")
    client = client_of(args)
    with display(quiet=args.quiet or args.json) as shown:
        if source is not None:
            to, size = download(_files(source, client), source.path, args.target, shown.show)
        else:
            assert target is not None
            found, size = upload(_files(target, client), args.source, target.path, shown.show)
            to = f"{target.run}:{target.role}:{target.index}/{found}"
    if args.json:
        print_json({"source": args.source, "target": to, "bytes": size})
    return OK


def parse(text: str) -> TaskPath | None:
    """A place in a task; None for a path of this machine, which may have `./` before it where it looks like one."""
    found = _TASK.fullmatch(text)
    return None if found is None else TaskPath(found["run"], found["role"], int(found["index"]), found["path"] or "")


def _files(task: TaskPath, client: Client | None) -> Files:
    if client is not None:
        return _OnServer(client, job_name(client, task.run), task)
    row, folder = find(task.run, current_user())
    place = locate(row.name, row.engine, folder, task.role, task.index)
    work = read_environment(os.path.join(place.last, layout.ENVIRONMENT)).get("PAI_WORK_DIR", "")
    if not os.path.isdir(work):
        raise PailotError(f"the files of {place} are not on this machine ({work or 'unknown'})")
    return _OfThisMachine(work)


class _OfThisMachine(Below):
    def read_folder(self, path: str) -> IO[bytes]:
        return packed(lambda out: self.pack(path, out))


class _OnServer:
    def __init__(self, client: Client, name: str, task: TaskPath) -> None:
        self._client, self._task = client, (name, task.role, task.index)

    def describe(self, path: str, mark: str = "") -> dict[str, object]:
        return self._client.describe_file(*self._task, path, mark)

    def read(self, path: str, offset: int = 0) -> tuple[IO[bytes], dict[str, object]]:
        found = self._client.read_file(*self._task, path, offset)
        about = {"size": int(found.headers["x-file-size"]), "version": found.headers["x-file-version"]}
        return found, about

    def read_folder(self, path: str) -> IO[bytes]:
        return self._client.read_file(*self._task, path, archive=True)

    def write(self, path: str, stream: IO[bytes], *, mark: str, offset: int, size: int, mode: int) -> int:
        return int(self._client.write_file(*self._task, path, stream, mark=mark, offset=offset, size=size, mode=mode)["done"])

    def unpack(self, path: str, stream: IO[bytes]) -> None:
        self._client.write_file(*self._task, path, stream, archive="true")
