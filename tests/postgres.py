"""Moved to `tests.support.postgres`."""

from tests.support.postgres import *  # noqa: F403  # the old path, until no branch uses it
