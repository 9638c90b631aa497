"""`<% … %>`: rendered as OpenPAI does, except that what it would leave unrendered is reported."""

from __future__ import annotations

import re

from ..printable import cut
from ..values import Value
from . import limits
from .js_semantics import to_string, trim
from .lazy_regex import pattern
from .problems import Finding, Near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Issue(Value):
    """What is wrong with a tag."""

    code: str
    message: str
    tag: str
    near: Near | None = None

    def finding(self, path: tuple[str | int, ...], tail: str = "") -> Finding:
        """The same as a finding; `tail` is said after its message."""
        near = self.near.replace(tail=tail) if self.near and tail else self.near
        return Finding(self.code, self.message if near else self.message + tail, path, fragment=self.tag, near=near)


FORGIVEN = ("template-unresolved", "template-malformed")
"""What is left as it is where a job is read leniently, as OpenPAI does."""
_INDEX = pattern(r"\[([0-9]+)\]")
_OTHER_TAGS = frozenset("#^/>{&=!")
_MISSING = object()


class Renderer:
    """Renders the templates of one scope; `issues` collects what could not be resolved, each tag once.

    `this` makes what a prerequisite's own templates can name, when the first of them asks for it.

    >>> renderer = Renderer({"$parameters": {"lr": 0.1}}, secrets={})
    >>> renderer.render("train --lr <% $parameters.lr %>")
    'train --lr 0.1'
    """

    def __init__(
        self,
        scope: Mapping[str, Any],
        secrets: Mapping[str, Any],
        *,
        this: Callable[[], Mapping[str, Any]] | None = None,
        allowance: limits.Allowance | None = None,
    ) -> None:
        self.scope = scope
        self.secrets = secrets
        self.issues: dict[str, Issue] = {}
        """By tag."""
        self._this = this
        self._allowance = allowance or limits.rendered()
        self._known: dict[str, tuple[str, Issue | None, int]] = {}
        self._values: dict[str, tuple[Any, str, Near | None]] = {}
        """Found values by name: a tag may be written in many ways."""
        self._units: dict[str, _Characters] = {}

    def render(self, text: str) -> str:
        """The text with every tag replaced; tags with an issue stay, in OpenPAI's spelling."""
        allowance = self._allowance
        allowance.take(len(text))
        first, *parts = text.split("<%")
        if not parts:
            return text
        out = [first]
        known, issues = self._known, self.issues
        for part in parts:
            tag, closed, literal = part.partition("%>")
            if not closed:
                issues["<%"] = Issue("template-malformed", "'<%' without '%>'; close the tag", "<%")
                out += "<%", part
                continue
            found = known.get(tag)
            if found is None:
                found = known[tag] = self._resolve(tag)
            rendered, issue, later = found
            if issue:
                issues.setdefault(issue.tag, issue)
            if later:
                allowance.take(later)
            out += rendered, literal
        allowance.take(sum(map(len, out)))  # before they are joined: a long value may be named very often
        return "".join(out)

    def charge(self, parts: int) -> None:
        """Count the parts of a list or mapping that is rendered, each as a short text."""
        self._allowance.take(16 * parts)

    def _resolve(self, tag: str) -> tuple[str, Issue | None, int]:
        """What stands for a tag, what is wrong with it, and by how many characters it grows when secrets are inserted."""
        name, verbatim = trim(tag), f"<%{tag}%>"
        if not name:
            return verbatim, Issue("template-malformed", "an empty tag; name a value, as in <% $parameters.x %>", verbatim), 0
        if name[0] in _OTHER_TAGS or "<%" in name:
            message = f"'<% {cut(name)} %>' is no reference; OpenPAI would drop it. Tags hold a name, as in <% $parameters.x %>"
            return verbatim, Issue("template-malformed", message, verbatim), 0
        if "[" in name:
            name = _INDEX.sub(r".\1", name)
        steps = name.split(".")
        found = self._values.get(name)
        if found is None:
            found = self._values[name] = self._look_up(steps)
        value, problem, near = found
        if problem:
            return f"<% {name} %>", Issue("template-unresolved", f"'{cut(name)}' {problem}", verbatim, near), 0
        if steps[0] == "$secrets":
            return f"<% {name} %>", None, len(value)
        if len(steps) > 1 and steps[-1].isdigit() and isinstance(lookup(self.scope, steps[:-1], "", self._units)[0], str):
            message = f"'{name}' takes one character of a text, here '{value}'; leave out the [{steps[-1]}] to use all of it"
            return value, Issue("template-string-index", message, verbatim), 0
        return value, None, 0

    def _look_up(self, steps: list[str]) -> tuple[Any, str, Near | None]:
        """The text that a name stands for, or in words why there is none."""
        if steps[0] == "$secrets":
            if len(steps) == 1:
                return None, "names no secret", None
            value, problem, near = lookup(self.secrets, steps[1:], "$secrets", self._units)
            return value if problem else to_string(value), problem, near
        if self._this and steps[0] not in self.scope:
            self.scope, self._this = {**self.scope, "this": self._this()}, None
        value, problem, near = lookup(self.scope, steps, "", self._units)
        return value if problem else to_string(value), problem, near


def lookup(
    scope: Mapping[str, Any], steps: list[str], done: str, units: dict[str, _Characters] | None = None
) -> tuple[Any, str, Near | None]:
    """The value a dotted name leads to, and in words why there is none; `units` remembers texts from call to call."""
    units = {} if units is None else units
    value: Any = scope
    for step in steps:
        parent = value
        if isinstance(parent, dict):
            value = parent.get(step, _MISSING)
        elif isinstance(parent, str | list):
            parts: Any = parent
            if isinstance(parent, str):
                parts = units.get(parent)
                if parts is None:
                    parts = units[parent] = _Characters(parent)
            value = parts[int(step)] if _is_index(step, len(parts)) else len(parts) if step == "length" else _MISSING
        else:
            value = _MISSING
        if value is _MISSING:
            return None, *_why_missing(parent, step, done)
        done = f"{done}.{step}" if done else step
    return value, "is empty (null)" if value is None else "", None


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


def _why_missing(parent: Any, step: str, done: str) -> tuple[str, Near | None]:
    done, shown = cut(done), cut(step)
    if isinstance(parent, dict):
        if not done:
            return f"is not known: there is no '{shown}'", Near(step, parent)
        return f"is not known: '{done}' has no '{shown}'", Near(step, parent)
    if isinstance(parent, list):
        return f"is not known: '{done}' is a list of {len(parent)}; indexes count from 0", None
    return f"is not known: '{done}' has no parts", None
