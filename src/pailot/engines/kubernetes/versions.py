"""Which versions of Kubernetes Pailot works with."""

from __future__ import annotations

import re

from ...printable import cut, printable
from ..contract import EngineError

OLDEST = (1, 30)
"""Sidecars, `backoffLimitPerIndex` and `podReplacementPolicy` are on by default in this version and in newer ones."""


def check_version(git_version: str) -> tuple[int, int]:
    """Return major and minor number of a cluster (`v1.35.4` gives `(1, 35)`), or refuse one that is too old."""
    found = re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})", git_version)
    if found is None:
        raise EngineError(f"the cluster says that its version is '{printable(cut(git_version))}': is this Kubernetes?")
    version = (int(found[1]), int(found[2]))
    if version < OLDEST:
        raise EngineError(f"the cluster has Kubernetes {version[0]}.{version[1]}; Pailot needs {OLDEST[0]}.{OLDEST[1]} or newer")
    return version
