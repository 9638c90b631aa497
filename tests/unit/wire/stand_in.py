"""Moved to `tests.support.stand_in_server`."""

from ...support.stand_in_server import *  # noqa: F403  # the old path, until no branch uses it
