"""Each engine in turn."""

from __future__ import annotations

import pytest

from pailot.testing import EngineUnderTest

from .engines import ENGINES

_ready: dict[str, EngineUnderTest | str] = {}


@pytest.fixture(scope="module", params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
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
