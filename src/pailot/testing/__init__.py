"""The conformance suite, for authors of engines: what every engine must do alike, with the real thing.

    from pailot.testing import EngineConformance, EngineUnderTest

    @pytest.fixture
    def engine() -> EngineUnderTest:
        return EngineUnderTest("mine")

    class TestMyEngine(EngineConformance):
        pass

It needs pytest, which no other room imports. docs/how-to/write-an-engine.md has an engine with its test.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("pailot.testing.conformance")

from .conformance import EngineConformance  # noqa: E402  # its assertions are rewritten first
from .engine_under_test import EngineUnderTest, Place  # noqa: E402

__all__ = ["EngineConformance", "EngineUnderTest", "Place"]
