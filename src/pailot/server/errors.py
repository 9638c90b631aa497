"""What the service refuses, in OpenPAI's codes."""

from __future__ import annotations

from ..jobserver import accounts, team_library
from ..jobserver import errors as team
from ..protocol.problems import InvalidJob
from ..store import StoreError
from ..store.server import BadValue
from ..store.server.tokens import BadToken
from .toolkit.errors import HttpError
from .toolkit.http import Response, json_response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..errors import PailotError
    from ..problem import Problem

# The first that fits, so what is special comes before what is general.
_CODES: tuple[tuple[type[Exception], int, str], ...] = (
    (accounts.WrongPassword, 400, "IncorrectPasswordError"),
    (accounts.NoSuchUser, 404, "NoUserError"),
    (accounts.NoSuchGroup, 404, "NoGroupError"),
    (accounts.NoSuchCluster, 400, "NoVirtualClusterError"),
    (accounts.NoSuchToken, 404, "NoTokenError"),
    (accounts.AdminStays, 403, "RemoveAdminError"),
    (team_library.NoSuchEntry, 404, "NoLibraryEntryError"),
    (team_library.EntryTaken, 409, "ConflictLibraryError"),
    (team_library.LibraryFull, 413, "LibraryFullError"),
    (BadToken, 401, "UnauthorizedUserError"),
    (team.Invalid, 400, "InvalidProtocolError"),
    (team.BadRequest, 400, "InvalidParametersError"),
    (team.Forbidden, 403, "ForbiddenUserError"),
    (team.QuotaExceeded, 413, "CodeQuotaError"),
    (team.Conflict, 409, "ConflictJobError"),
    (team.NoSuchTag, 404, "NoTagError"),
    (team.NoSuchLog, 404, "NoTaskLogError"),
    (team.NoSuchCode, 404, "NoCodeError"),
    (team.NoSuchJob, 404, "NoJobError"),
    (team.Missing, 404, "NoJobError"),
    (team.ShuttingDown, 503, "ShuttingDownError"),
    (team.Unavailable, 503, "UnavailableError"),
    (BadValue, 400, "InvalidParametersError"),
    (StoreError, 503, "UnavailableError"),
)


def response_of(error: PailotError) -> Response:
    """The answer for an error that was raised on purpose."""
    if isinstance(error, HttpError):
        if error.status == 204:
            answer = Response(b"", 204)
            answer.headers = list(error.headers)  # no content, so neither its kind nor its length
            return answer
        body: dict[str, object] = {"code": error.code, "message": error.message} if error.code else {"message": error.message}
        return json_response(body, error.status, error.headers)
    if isinstance(error, accounts.TooManyFailures):
        wait = [(b"retry-after", b"%d" % max(1, round(error.seconds)))]
        return json_response({"code": "TooManyFailuresError", "message": str(error)}, 429, wait)
    if isinstance(error, InvalidJob):
        return invalid(error.problems)
    if isinstance(error, team.Invalid) and error.problems:
        return invalid(error.problems)
    for kind, status, code in _CODES:
        if isinstance(error, kind):
            return json_response({"code": code, "message": str(error)}, status)
    return json_response({"code": "InvalidParametersError", "message": str(error)}, 400)


def invalid(problems: Sequence[Problem]) -> Response:
    """A job file that cannot be run: every problem with its place, for people and for programs."""
    errors = [problem for problem in problems if problem.is_error] or problems
    message = "\n".join(f"{each.line}:{each.column}: {each.message}" for each in errors)
    return json_response(
        {"code": "InvalidProtocolError", "message": message, "problems": [each.to_json() for each in problems]}, 400
    )
