"""Every engine of ours passes the suite that `pailot.testing` offers to authors of engines."""

from __future__ import annotations

from pailot.testing import EngineConformance


class TestEngines(EngineConformance):
    """With the fixture `engine` of conftest.py: each engine in turn."""
