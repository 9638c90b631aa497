"""Every test here runs on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.store.server import ServerStore
from tests.support.postgres import Postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/home/server.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_url()


@pytest.fixture
def store(url: str) -> Iterator[ServerStore]:
    with ServerStore.open(url) as opened:
        yield opened
