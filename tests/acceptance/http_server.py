"""Moved to `tests.support.http_server`."""

from ..support.http_server import *  # noqa: F403  # the old path, until no branch uses it
