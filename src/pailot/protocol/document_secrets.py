"""What is secret in the values of a document, whether or not they are a job: texts that no line or message may show."""

from __future__ import annotations

import re

from .. import credentials
from .js_semantics import to_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_KEY_AND_WORD = r"""(?<![\w.-])([A-Za-z_][\w.-]*)["']?[ \t]*:[ \t]+["']?([^\s"',}\]]+)"""


def hidden_in_lines(root: Any, source: str) -> tuple[str, ...]:
    """What no line of a document that is shown with a problem may show; longer texts first, since they may hold others."""
    found = {text for text in leaves(root.get("secrets")) if len(text) > 2} if isinstance(root, dict) else set()
    if credentials.may_hold(source):
        if isinstance(root, dict):
            found.update(of_part("", {key: item for key, item in root.items() if key != "secrets"}))
            found.update(_passwords(root.get("prerequisites")))
        else:  # it could not be read: go by the look of the lines
            found.update(credentials.in_text(source))
            for name, value in re.findall(_KEY_AND_WORD, source):
                found.update(credentials.of_value(name, value))
    lines = {line for text in found if "\n" in text for line in map(str.strip, text.split("\n")) if len(line) > 2}
    return tuple(sorted(found | lines, key=len, reverse=True))


def _passwords(prerequisites: Any) -> Iterator[str]:
    """Those of registries, in a document that is perhaps not right."""
    for each in prerequisites if isinstance(prerequisites, list) else ():
        auth = each.get("auth") if isinstance(each, dict) else None
        password = to_string(auth.get("password")) if isinstance(auth, dict) else ""
        if len(password) > 2 and "<%" not in password:
            yield password


def leaves(value: Any) -> list[str]:
    """Every text inside the secrets."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if value is None else [to_string(value)]


def of_part(name: str, value: Any) -> Iterator[str]:
    """What looks like a credential in a part of a document; `name` is its key."""
    if isinstance(value, str):
        yield from credentials.of_value(name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from of_part(str(key), item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from of_part(name, item)
    elif isinstance(value, int | float) and not isinstance(value, bool) and credentials.strength(name) == credentials.STRONG:
        yield from credentials.of_value(name, to_string(value))
