"""What goes wrong with data on its way."""

from __future__ import annotations

from ..errors import PailotError


class DataError(PailotError):
    """A place that a job names cannot be read or written; the message says why and what to do."""
