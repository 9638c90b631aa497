"""Each engine in turn."""

from __future__ import annotations

import pytest

from pailot.testing import EngineUnderTest

from .engines import ENGINES, ON_KUBERNETES

_ready: dict[str, EngineUnderTest | str] = {}


@pytest.fixture(scope="module", params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    """Each engine; one that is not here is skipped, with the line that enables it."""
    return ready(request.param)


def ready(name: str) -> EngineUnderTest:
    """An engine by its name, made ready once."""
    if name not in _ready:
        try:
            _ready[name] = {**ENGINES, **ON_KUBERNETES}[name]()
        except pytest.skip.Exception as skipped:
            _ready[name] = str(skipped)
    found = _ready[name]
    if isinstance(found, str):
        pytest.skip(found)
    return found
