"""Moved to `tests.support.servers`."""

from ..support.servers import *  # noqa: F403  # the old path, until no branch uses it
