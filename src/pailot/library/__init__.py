"""Prerequisites, data sets and job templates by name and version: folders, URLs, and what a server keeps.

`places` finds and keeps files, `entries` reads one and says what it is.
"""

from __future__ import annotations

from .places import Library, LibraryError, read_place

__all__ = ["Library", "LibraryError", "read_place"]
