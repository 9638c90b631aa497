"""The engine `kubernetes` passes the same tests on three real nodes, in pods of root and of an image's own user."""

from __future__ import annotations

import pytest

from pailot.testing import EngineUnderTest

from . import test_engines
from .conftest import ready
from .engines import ON_KUBERNETES


@pytest.fixture(scope="module", params=list(ON_KUBERNETES))
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    return ready(request.param)


class TestOnKubernetes(test_engines.TestEngines):
    """With the fixture above."""
