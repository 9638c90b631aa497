"""Moved to `tests.support.web_server`."""

from tests.support.web_server import *  # noqa: F403  # the old path, until no branch uses it
