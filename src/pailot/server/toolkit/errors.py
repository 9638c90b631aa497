"""The error that a handler raises to end a request."""

from __future__ import annotations

from ...errors import PailotError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .http import Headers


class HttpError(PailotError):
    """An answer that is not what the client hoped for: `{"code": …, "message": …}`."""

    def __init__(self, status: int, code: str, message: str, headers: Headers | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or []
