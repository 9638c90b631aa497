"""What can go wrong between us and a server.

WireError
├── Unreachable   no answer, or none that makes sense, or one from somewhere else   exit status 4
├── Denied        401 or 403: log in, or ask the owner       exit status 5
├── NotFound      404
├── Failing       500 and above: the server has a trouble     exit status 4
└── Refused       any other answer that is no success; `code` and `message` are the server's
"""

from __future__ import annotations

from ..errors import PailotError


class WireError(PailotError):
    """A request did not succeed."""


class Unreachable(WireError):
    """The server does not answer."""

    exit_status = 4


class NotTheApi(Unreachable):
    """Something responds at the address, but it is not the expected server."""


class Redirected(NotTheApi):
    """The server is somewhere else: `message` says where."""


class Refused(WireError):
    """The server refused the request."""

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Denied(Refused):
    """This user may not do that, or there is no login."""

    exit_status = 5


class Failing(Refused):
    """The server cannot do it now: it is ending, or its disk is full."""

    exit_status = 4


class NotFound(Refused):
    """There is no such thing on the server."""
