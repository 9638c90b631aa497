"""The error of a log-in that cannot be made."""

from __future__ import annotations

from ...errors import PailotError


class LoginError(PailotError):
    """There is no way to log in to the cluster; the message says why and what to do."""
