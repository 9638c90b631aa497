"""How a missing part is installed: the one place for the lines that messages name.

The line works where Pailot itself came from. From an index that is the name of the project, from a clone or a file its path.
"""

from __future__ import annotations

import json
from os.path import exists
from urllib.parse import unquote

EXTRAS = ("server", "enter", "postgres", "luigi", "storage", "s3", "oss", "hdfs", "all")
"""Those of `pyproject.toml` that users install."""


def install_line(extra: str) -> str:
    """Return the command that installs an extra beside what is there: `pip install 'pailot[server]'`.

    Raises ValueError for an extra that does not exist.
    """
    if extra not in EXTRAS:
        raise ValueError(f"there is no extra {extra!r}")
    return f"pip install '{_source()}[{extra}]'"


def _source() -> str:
    """What pip was given when it installed this package."""
    from importlib.metadata import PackageNotFoundError, distribution  # costs start-up

    try:
        told = json.loads(distribution("pailot").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return "pailot"
    url = told.get("url", "") if isinstance(told, dict) else ""
    path = unquote(str(url).removeprefix("file://"))
    return path if str(url).startswith("file:///") and exists(path) and "'" not in path else "pailot"
