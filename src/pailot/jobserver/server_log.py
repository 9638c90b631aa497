"""The log of a server and of its keeper: records of the standard library's `logging`, as text or as JSON, a line each.

A line names the request that it goes back to, by the id that the client has in the header `X-Request-Id`. So one id leads
from the response through the server to the keeper. A line holds names and ids, never a token, a secret, a query or the text of
a job.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextvars import ContextVar

from ..printable import printable
from ..runfolder.careful_files import private
from ..runtime import defects
from ..settings import BadSetting
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings import Settings

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
ROTATE_BYTES = 50_000_000
"""Of the keeper's log; one older file is kept beside it."""

SERVER = logging.getLogger("pailot.server")
KEEPER = logging.getLogger("pailot.keeper")
current_request: ContextVar[str] = ContextVar("current_request", default="")
"""The id of the request that is being served."""


class LogOptions(Value):
    """How a log is written, and which records are."""

    format: str = "text"
    level: str = "warning"

    @classmethod
    def of(cls, settings: Settings) -> LogOptions:
        """Raises BadSetting for a word that is none of those known."""
        found = cls(str(settings["log_format"]).lower(), str(settings["log_level"]).lower())
        for name, value, known in (("log_format", found.format, FORMATS), ("log_level", found.level, LEVELS)):
            if value not in known:
                raise BadSetting(f"{name}: should be one of {', '.join(known)}, is {value!r}")
        return found


def configure(own: logging.Logger, options: LogOptions, file: str = "") -> None:
    """Send the records of this process to standard error; its defects go to the logger `own`.

    `file` is where standard error leads, if it is to be rotated.
    """
    handler = _Lines(options.format == "json", file)
    for name, level in (("pailot", options.level), ("uvicorn", "error"), ("asyncio", "warning")):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False

    def report(of: str, number: str, lines: str) -> None:
        own.error("defect %s", number, extra={"fields": {"of": of}, "traceback": lines})

    defects.report = report


def note(logger: logging.Logger, level: int, message: str, **fields: str | int | float | None) -> None:
    """Log a message with its fields; fields that are None or empty are left out. `request` is the current one by default."""
    if logger.isEnabledFor(level):
        logger.log(level, message, extra={"fields": fields})


class _Lines(logging.Handler):
    """Writes each record with one call of the system, so that lines of threads and processes stay whole."""

    def __init__(self, as_json: bool, file: str) -> None:
        super().__init__()
        self.as_json, self.file = as_json, file

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.flush()
        try:
            os.write(2, (_as_json(record) if self.as_json else _as_text(record)).encode("utf-8", "backslashreplace"))
            if self.file and os.fstat(2).st_size > ROTATE_BYTES:
                _rotate(self.file)
        except OSError:
            pass  # a full disk or a closed pipe must not keep the server from its work


def _fields(record: logging.LogRecord) -> dict[str, str | int | float]:
    found: dict[str, str | int | float | None] = {"request": current_request.get(), **getattr(record, "fields", {})}
    return {name: value for name, value in found.items() if value not in (None, "")}


def _traceback(record: logging.LogRecord) -> str:
    if record.exc_info:
        return logging.Formatter().formatException(record.exc_info)
    return str(getattr(record, "traceback", ""))


def _as_json(record: logging.LogRecord) -> str:
    told = {
        "time": _moment(record),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        **_fields(record),
    }
    traceback = _traceback(record)
    return json.dumps(told | {"traceback": traceback} if traceback else told, separators=(",", ":")) + "\n"


def _as_text(record: logging.LogRecord) -> str:
    words = [_moment(record), record.levelname.lower(), f"{record.name}:", printable(record.getMessage())]
    words += [f"{name}={_quoted(value)}" for name, value in _fields(record).items()]
    traceback = _traceback(record).rstrip("\n")
    return " ".join(words) + "\n" + (f"{printable(traceback, keep=chr(10))}\n" if traceback else "")


def _quoted(value: str | float) -> str:
    text = printable(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text else text


def _moment(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _rotate(file: str) -> None:
    os.replace(file, f"{file}.1")
    with open(file, "ab", opener=private) as stream:
        for descriptor in (1, 2):
            os.dup2(stream.fileno(), descriptor)
