"""A home for the runs of each test."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.testing.runs import Home
from tests.support.postgres import Postgres


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.close()


UNIX_USERS = "unix-users"
"""A server that is root, and whose users are Unix users; only root can try that."""


def unix_users(*names: str) -> dict[str, str]:
    """The setting for a server with these users besides `admin`, each of them another Unix user."""
    if os.geteuid() != 0:
        pytest.skip("only root can start processes of other users")
    known = [each.pw_name for each in pwd.getpwall() if 0 < each.pw_uid < 65535 and each.pw_name != "games"]
    pairs = [("admin", "games"), *zip(names, known, strict=False)]
    return {"PAILOT_UNIX_USERS": ",".join(f"{user}={unix}" for user, unix in pairs)}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """Where a server keeps its jobs: in its home, or in a real PostgreSQL; what uses this is tested with both."""
    if request.param == "sqlite":
        return ""
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.new_url()
