"""References to what a library holds: `mnist`, or one version of it, `mnist@2`."""

from __future__ import annotations

import re

from .js_semantics import to_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

LATEST = "latest"
"""The version of a prerequisite whose file names none."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,255}", re.ASCII)
_VERSION = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}", re.ASCII)
_PIECE = re.compile(r"[0-9]+|[^0-9]+", re.ASCII)


def split(reference: str) -> tuple[str, str]:
    """The name and the version of a reference; the version is empty where none is named.

    >>> split("mnist@2"), split("mnist")
    (('mnist', '2'), ('mnist', ''))
    """
    name, _, version = reference.partition("@")
    return name, version


def is_reference(text: str) -> bool:
    """Whether a text can name an entry of a library. Nothing that leads to another folder can."""
    name, at, version = text.partition("@")
    return _NAME.fullmatch(name) is not None and (not at or is_version(version))


def is_version(text: str) -> bool:
    """Whether a library can keep an entry under this version: a file name and an address may hold it as it is."""
    return _VERSION.fullmatch(text) is not None


def version_of(fields: Mapping[str, Any]) -> str:
    """The version that a file names, as text.

    >>> version_of({"version": 1.0}), version_of({})
    ('1', 'latest')
    """
    found = fields.get("version")
    return LATEST if found is None else to_string(found)


def version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """What versions are ordered by: digits as numbers, the rest as text; `latest` is behind all others.

    >>> sorted(["10", "latest", "9", "1.2", "1.10"], key=version_order)
    ['1.2', '1.10', '9', '10', 'latest']
    """
    if version == LATEST:
        return ((2, 0, ""),)
    return tuple((1, int(piece), "") if piece.isdecimal() else (0, 0, piece) for piece in _PIECE.findall(version))


def newest(versions: Iterable[str]) -> str:
    """The version that a bare name means; empty where there is none."""
    return max(versions, key=version_order, default="")
