"""One place for runs per test, on each engine in turn."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..acceptance import runs
from ..acceptance.runs import Home, Result
from .engines import ENGINES, Engine

_ready: dict[str, Engine | str] = {}


class Place(Home):
    """A home whose runs go to one engine."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(folder)
        self.engine = engine
        self.environment |= engine.environment
        if engine.prepare:
            engine.prepare(folder)

    def job(self, *roles: str, **more: object) -> str:
        """A job file with the engine's image."""
        return runs.job(*roles, **more).replace("uri: debian", f"uri: '{self.engine.image}'")  # type: ignore[arg-type]  # passed on

    def start(self, text: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        return super().start(text, "-e", self.engine.name, *self.engine.options, *options, **environment)

    def run(self, text: str, *options: str, timeout: float = 0, **environment: str) -> Result:
        return super().run(text, *options, timeout=timeout or self.engine.seconds, **environment)

    def pailot(self, *arguments: str, timeout: float = 0) -> Result:
        return super().pailot(*arguments, timeout=timeout or self.engine.seconds)


@pytest.fixture(scope="module", params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine; one that is not here is skipped, with the line that enables it."""
    name = request.param
    if name not in _ready:
        try:
            _ready[name] = ENGINES[name]()
        except pytest.skip.Exception as skipped:
            _ready[name] = str(skipped)
    found = _ready[name]
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def place(tmp_path: Path, engine: Engine) -> Iterator[Place]:
    made = Place(tmp_path, engine)
    yield made
    made.close()
    if engine.left:
        runs.wait_for(lambda: not engine.left(), 120, "the removal of everything that a run has made")
