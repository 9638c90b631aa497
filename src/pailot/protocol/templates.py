"""`<% … %>`: rendered as OpenPAI does, except that what it would leave unrendered is reported."""

from __future__ import annotations

import re

from ..errors import suggestion
from .js_semantics import to_string, trim
from .lazy_regex import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NamedTuple

    class Issue(NamedTuple):
        code: str
        message: str
        tag: str


_INDEX = pattern(r"\[([0-9]+)\]")
_OTHER_TAGS = frozenset("#^/>{&=!")
_MISSING = object()


class Renderer:
    """Renders the templates of one scope; `issues` collects what could not be resolved.

    >>> renderer = Renderer({"$parameters": {"lr": 0.1}}, secrets={})
    >>> renderer.render("train --lr <% $parameters.lr %>")
    'train --lr 0.1'
    """

    def __init__(self, scope: Mapping[str, Any], secrets: Mapping[str, Any]) -> None:
        self.scope = scope
        self.secrets = secrets
        self.issues: list[Issue | tuple[str, str, str]] = []
        self._known: dict[str, tuple[str, tuple[str, str, str] | None]] = {}

    def render(self, text: str) -> str:
        """The text with every tag replaced; tags with an issue stay, in OpenPAI's spelling."""
        first, *parts = text.split("<%")
        if not parts:
            return text
        out = [first]
        known, issues = self._known, self.issues
        for part in parts:
            tag, closed, literal = part.partition("%>")
            if not closed:
                issues.append(("template-malformed", "'<%' without '%>'; close the tag", "<%"))
                out += "<%", part
                continue
            found = known.get(tag)
            if found is None:
                found = known[tag] = self._resolve(tag)
            if found[1]:
                issues.append(found[1])
            out += found[0], literal
        return "".join(out)

    def _resolve(self, tag: str) -> tuple[str, tuple[str, str, str] | None]:
        name, verbatim = trim(tag), f"<%{tag}%>"
        if not name:
            return verbatim, ("template-malformed", "an empty tag; name a value, as in <% $parameters.x %>", verbatim)
        if name[0] in _OTHER_TAGS or "<%" in name:
            message = f"'<% {name} %>' is no reference; OpenPAI would drop it. Tags hold a name, as in <% $parameters.x %>"
            return verbatim, ("template-malformed", message, verbatim)
        if "[" in name:
            name = _INDEX.sub(r".\1", name)
        steps = name.split(".")
        if steps[0] == "$secrets":
            value, problem = lookup(self.secrets, steps[1:], "$secrets") if len(steps) > 1 else (None, "names no secret")
            issue = ("template-unresolved", f"'{name}' {problem}", verbatim) if problem else None
            return f"<% {name} %>", issue
        value, problem = lookup(self.scope, steps, "")
        if problem:
            return f"<% {name} %>", ("template-unresolved", f"'{name}' {problem}", verbatim)
        if value is _MISSING:
            return f"<% {name} %>", None
        text = to_string(value)
        if len(steps) > 1 and steps[-1].isdigit() and isinstance(lookup(self.scope, steps[:-1], "")[0], str):
            message = f"'{name}' takes one character of a text, here '{text}'; leave out the [{steps[-1]}] to use all of it"
            return text, ("template-string-index", message, verbatim)
        return text, None


def lookup(scope: Mapping[str, Any], steps: list[str], done: str) -> tuple[Any, str]:
    """The value a dotted name leads to, and in words why there is none."""
    value: Any = scope
    for step in steps:
        parent = value
        if isinstance(parent, dict):
            value = parent.get(step, _MISSING)
        elif isinstance(parent, str | list):
            parts = parent if isinstance(parent, list) else _Characters(parent)
            value = parts[int(step)] if _is_index(step, len(parts)) else len(parts) if step == "length" else _MISSING
        else:
            value = _MISSING
        if value is _MISSING:
            return None, _why_missing(parent, step, done)
        done = f"{done}.{step}" if done else step
    return value, "is empty (null)" if value is None else ""


class _Characters:
    """A text as JavaScript counts it: in units of UTF-16."""

    def __init__(self, text: str) -> None:
        self.units = text.encode("utf-16-le", "surrogatepass")

    def __len__(self) -> int:
        return len(self.units) // 2

    def __getitem__(self, position: int) -> str:
        return self.units[2 * position : 2 * position + 2].decode("utf-16-le", "replace")


_SECRET = r"<% \$secrets\.([\s\S]+?) %>"


def secret_references(text: str) -> list[str]:
    """The canonical references to secrets that a rendered text still holds."""
    return [match[0] for match in re.finditer(_SECRET, text)]


def replace_secrets(text: str, value: Callable[[str], str]) -> str:
    """A rendered text with `value(name)` for each secret; what was inserted is not looked at again."""
    return re.sub(_SECRET, lambda match: value(match[1]), text)


def join_commands(commands: list[str] | tuple[str, ...]) -> str:
    """Commands as one template: each trimmed, one a line."""
    return "\n".join([trim(command) for command in commands])


def _is_index(step: str, length: int) -> bool:
    return step.isascii() and step.isdigit() and (step == "0" or step[0] != "0") and len(step) < 10 and int(step) < length


def _why_missing(parent: Any, step: str, done: str) -> str:
    if isinstance(parent, dict):
        if not done:
            return f"is not known: there is no '{step}'{suggestion(step, parent)}"
        return f"is not known: '{done}' has no '{step}'{suggestion(step, parent)}"
    if isinstance(parent, list):
        return f"is not known: '{done}' is a list of {len(parent)}; indexes count from 0"
    return f"is not known: '{done}' has no parts"
