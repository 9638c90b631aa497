"""Where the logs of a job are: a Pailot has them whole at addresses of its own, an OpenPAI tells where each is."""

from __future__ import annotations

from ...client.errors import NotFound, Refused
from ...client.openpai_logs import PIECE, LogPlaces
from ...runfolder.layout import ALL, STDERR, STDOUT, STREAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...client.api import Client
    from .local_copy import TaskLogs


class PailotLogs:
    """Logs of a Pailot server: exact offsets, one address for each."""

    def __init__(self, client: Client, job: str) -> None:
        self.client, self.job = client, job

    def fetch(self, role: str, index: int, attempt: int, task_attempt: int, logs: TaskLogs) -> bool:
        """Take what is new; return whether there was something."""
        grown = False
        for stream in (ALL, STDOUT, STDERR):
            while True:
                try:
                    start, data = self.client.log_piece(
                        self.job,
                        role,
                        index,
                        stream=stream,
                        attempt=attempt,
                        task_attempt=task_attempt,
                        offset=logs.offset(stream),
                        limit=PIECE,
                    )
                except NotFound:
                    return grown  # it has not begun
                grown |= logs.add(stream, data, missing=start - logs.offset(stream))
                if len(data) < PIECE:
                    break
            if stream == ALL and not grown and logs.offset(ALL) == logs.offset(STDOUT) + logs.offset(STDERR):
                return False  # the others have nothing, either
        return grown

    def flush(self, logs: TaskLogs) -> bool:
        return logs.flush()


class OpenpaiLogs:
    """Logs of an OpenPAI cluster, which tells where each is."""

    def __init__(self, client: Client, job: str) -> None:
        self._places = LogPlaces(client, job)
        self._without_all = False

    def fetch(self, role: str, index: int, attempt: int, task_attempt: int, logs: TaskLogs) -> bool:
        """Take what is new; return whether there was something."""
        where = (role, index, attempt, task_attempt)
        names = self._places.names(where)
        self._without_all = ALL not in names
        grown = False
        for stream in STREAMS:
            try:
                for data in self._places.new(where, stream, logs.offset(stream)):
                    grown |= logs.add(stream, data, also_all=self._without_all)
            except Refused:
                continue  # the next look asks anew where it is
        return grown

    def flush(self, logs: TaskLogs) -> bool:
        return logs.flush(also_all=self._without_all)

    def close(self) -> None:
        self._places.close()
