"""One file of a library: what it is, checked as a job file is, and what may be said of it."""

from __future__ import annotations

import re

from ..protocol import InvalidJob
from ..protocol.checks import BUILTIN_PLUGINS
from ..protocol.document_secrets import leaves, of_part
from ..protocol.job_builder import PLUGIN_PREFIX
from ..protocol.model import Origin
from ..protocol.problems import Finding, Near
from ..protocol.reader import parse_text, read
from ..protocol.references import is_version, version_of
from ..protocol.schema import NAME, PREREQUISITE
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ..protocol.reader import Library
    from ..protocol.yaml import Document

JOB = "job"
"""The type of a job template."""
TYPES = ("data", "dockerimage", "output", "script", JOB)
MOST_CHARACTERS = 256 * 1024
"""Of one file: a library is read as a whole by people, and often by servers."""
MOST_DESCRIPTION = 500
MOST_BYTES = 1 << 60
_SIZE = re.compile(r"\s*([0-9]{1,19}(?:\.[0-9]{1,9})?)\s*([kKMGTP]?)(i?)[Bb]?\s*", re.ASCII)
_UNITS = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5}


class Entry(Value):
    """What a library says of one of its files."""

    name: str
    type: str
    version: str
    description: str = ""
    owner: str = ""
    """On a server: the user who may change it. In a file: its `contributor`."""
    size: int | None = None
    """Bytes that a data set has, as its file says."""
    plugin: str = ""
    uri: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The keys that every list of entries has."""
        return {
            "name": self.name,
            "version": self.version,
            "type": self.type,
            "description": self.description,
            "owner": self.owner,
            "size": self.size,
            "plugin": self.plugin,
            "uri": list(self.uri),
            "require": list(self.require),
            "sha256": list(self.sha256),
        }

    def matches(self, words: str, kind: str = "") -> bool:
        """Whether every word stands in its name, description, owner or addresses, and it has the type."""
        if kind and kind != self.type:
            return False
        text = "\n".join((self.name, self.version, self.type, self.description, self.owner, *self.uri)).lower()
        return all(word in text for word in words.lower().split())


def describe(root: Any, name: str = "") -> Entry:
    """What a document says of itself, however much of it is wrong; `name` is that of its file."""
    fields: Mapping[str, Any] = root if isinstance(root, dict) else {}
    plugin = _text(fields, "plugin").removeprefix(PLUGIN_PREFIX)
    return Entry(
        name or _text(fields, "name"),
        _text(fields, "type") or "?",
        version_of(fields)[:64],
        " ".join(_text(fields, "description").split())[:MOST_DESCRIPTION],
        _text(fields, "contributor"),
        size_in_bytes(fields.get("size")),
        plugin,
        _texts(fields, "uri"),
        _texts(fields, "require"),
        _texts(fields, "sha256"),
    )


def read_entry(
    text: str,
    file: str = "-",
    *,
    library: Library | None = None,
    is_plugin: Callable[[str], bool] | None = None,
    shared: bool = False,
) -> Entry:
    """Check a file as a library takes it; raises InvalidJob with everything that is wrong.

    `shared` is for a server, whose users all read it: then no secret may stand in it.
    """
    document = parse_text(text, file)
    root = document.root
    findings = list(_checked(root, text, file, library, is_plugin))
    if isinstance(root, dict):
        findings += _own_rules(root, text)
        if shared:
            findings += _secrets(root)
    _raise(file, document, findings)
    return describe(root)


def size_in_bytes(value: Any) -> int | None:
    """A size as files write it: a number of bytes, or a text such as '1.5 GB' or '3 TiB'; None for anything else.

    >>> [size_in_bytes(each) for each in (12, "12", "1.5 kB", "2 KiB", "much", -1)]
    [12, 12, 1500, 2048, None, None]
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if isinstance(value, str):
        if found is None:
            return None
        base = 1024 if found[3] else 1000
        if found[3] and not found[2]:
            return None
        unit = _UNITS["k" if found[2] == "K" else found[2]]
        amount = float(found[1]) * base**unit if "." in found[1] else int(found[1]) * base**unit
    else:
        amount = value
    return int(amount) if 0 <= amount <= MOST_BYTES else None


def _checked(
    root: Any, text: str, file: str, library: Library | None, is_plugin: Callable[[str], bool] | None
) -> Iterator[Finding]:
    """What is wrong with a file as a prerequisite; a job template raises what is wrong with it as a job."""
    if isinstance(root, dict) and root.get("type") == JOB:
        read(text, file=file, library=library, is_plugin=is_plugin)
        return
    wrong = PREREQUISITE.check(root)
    yield from wrong
    if wrong or not isinstance(root, dict):
        return
    plugin = str(root.get("plugin") or "cmd").removeprefix(PLUGIN_PREFIX)
    if plugin not in BUILTIN_PLUGINS and not (is_plugin is not None and is_plugin(plugin)):
        near = Near(plugin, tuple(BUILTIN_PLUGINS))
        yield Finding("unknown-plugin", f"there is no plugin '{plugin[:100]}'", ("plugin",), near=near)


def _own_rules(root: Mapping[str, Any], text: str) -> Iterator[Finding]:
    version = version_of(root)
    if len(text) > MOST_CHARACTERS:
        yield Finding("job-limit", f"the file has {len(text)} characters; a library takes {MOST_CHARACTERS} at most")
    if not is_version(version):
        message = f"the version '{version[:70]}' cannot be kept: use up to 64 letters, digits, '.', '_', '+' and '-'"
        yield Finding("bad-value", message, ("version",))
    if isinstance(root.get("name"), str) and NAME.check(root["name"]):
        yield Finding("bad-name", "use letters, digits, '-' and '_' only", ("name",))
    if root.get("type") == "data" and root.get("size") is not None and size_in_bytes(root["size"]) is None:
        yield Finding("bad-value", "'size' should be a number of bytes, or a text such as '1.5 GB'", ("size",))


def _secrets(root: Mapping[str, Any]) -> Iterator[Finding]:
    """What no file may hold that all users of a server read."""
    if any(leaves(root.get("secrets"))):
        message = "every user of the server reads its library: leave the values empty, each job gives its own"
        yield Finding("library-secret", message, ("secrets",))
    for key, value in root.items():
        if key != "secrets" and any(True for _ in of_part(str(key), value)):
            message = f"'{key}' holds a credential, and every user of the server reads its library: refer to <% $secrets.NAME %>"
            yield Finding("library-secret", message, (key,))


def _raise(file: str, document: Document, findings: list[Finding]) -> None:
    if findings:
        raise InvalidJob(Origin(file, document, findings).warnings())


def _text(fields: Mapping[str, Any], key: str) -> str:
    found = fields.get(key)
    return found if isinstance(found, str) else ""


def _texts(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = fields.get(key)
    items = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return tuple(each for each in items if isinstance(each, str))
