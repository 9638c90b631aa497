"""Collections in brackets, and what both styles share: tags, anchors, merges."""

from __future__ import annotations

import re

from ..js_semantics import to_string
from ..lazy_regex import pattern
from . import scalars
from .cursor import MARKER
from .document import LIMITS, List, Map, new_list, new_map
from .literals import Literals
from .tags import TAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FLOW_FIRST = r"(?:[^ \t\n,\[\]{}#&*!|>'\"%@`?:-]|[?:-](?=[^ \t\n,\[\]{}]))"
_FLOW_BODY = r"(?:[^ \t\n:#,\[\]{}]++|:(?=[^ \t\n,\[\]{}])|(?<=[^ \t\n,\[\]{}])#|[ \t]++(?=[^ \t\n#,\[\]{}]))*"
_FLOW_PLAIN = pattern(_FLOW_FIRST + _FLOW_BODY)
_FLOW_MORE = pattern(r"(?:[^ \t\n:#,\[\]{}]|:(?=[^ \t\n,\[\]{}]))" + _FLOW_BODY)
_PLAIN_PAIR = pattern(r"([^\W\d]\w*+): ([\w/.][\w/.-]*+(?::[\w/.-]++)?+)(?:, (?=[^ \t\n#])|(?=\}))", re.ASCII)
"""`name: image, ` or `cpu: 1` before the bracket that closes: with nothing to skip, and no node but the two."""
NAME = pattern(r"[^ \t\n,\[\]{}]++")
TAG = pattern(r"![^ \t\n]*+")
PROPERTY_ALONE = "a tag or an anchor stands on the line of its value"


class Flow(Literals):
    """Reads `[…]` and `{…}`."""

    def flow(self, at: int) -> Any:
        return self._flow_list(at) if self.text[at] == "[" else self._flow_map(at)

    def _flow_list(self, at: int) -> List:
        result = new_list(at)
        text, i = self.text, self._skip_flow(at + 1)
        while text[i] != "]":
            result.marks.append(i)
            item, plain = self._flow_node(i)
            i = self._skip_flow(self.i)
            if text[i] == ":" and "\n" not in text[result.marks[-1] : i] and (text[i + 1] in " \t\n,[]{}" or not plain):
                pair = new_map(result.marks[-1])
                value_at = self._skip_flow(i + 1)
                value = None if text[value_at] in ",]" else self._flow_node(value_at)[0]
                self._add(pair, set(), item, value, result.marks[-1], plain_merge=plain and item == "<<")
                i = self._skip_flow(self.i if value is not None or text[value_at] not in ",]" else value_at)
                item = pair
            result.append(item)
            if text[i] == ",":
                i = self._skip_flow(i + 1)
            elif text[i] != "]":
                self._fail("yaml-syntax", self._flow_problem(i, "]"), i)
        self.i = i + 1
        return result

    def _flow_map(self, at: int) -> Map:
        result = new_map(at)
        merged: set[str] = set()
        text, i = self.text, self._skip_flow(at + 1)
        while text[i] != "}":
            key_at = i
            pair = _PLAIN_PAIR.match(text, i)
            if pair and self.depth < LIMITS.DEPTH and self.nodes + 2 <= LIMITS.NODES:
                self.nodes += 2
                word, plain_value = pair.groups()
                found = scalars.resolve(plain_value)
                self.note_if_ambiguous(pair.start(2), plain_value, found)
                self._add(result, merged, scalars.resolve(word), found, key_at, plain_merge=False)
                i = pair.end()
                continue
            explicit = text[i] == "?" and text[i + 1] in " \t\n"
            if explicit:
                i = self._skip_flow(i + 1)
            if text[i] == ":" and text[i + 1] in " \t\n,{}[]":
                key, plain = None, False
            else:
                key, plain = self._flow_node(i)
                i = self._skip_flow(self.i)
            value = None
            if text[i] == ":" and (explicit or "\n" not in text[key_at:i]):
                value_at = self._skip_flow(i + 1)
                if text[value_at] not in ",}":
                    value = self._flow_node(value_at)[0]
                    i = self._skip_flow(self.i)
                else:
                    i = value_at
            self._add(result, merged, key, value, key_at, plain_merge=plain and key == "<<")
            if text[i] == ",":
                i = self._skip_flow(i + 1)
            elif text[i] != "}":
                self._fail("yaml-syntax", self._flow_problem(i, "}"), i)
        self.i = i + 1
        return result

    def _flow_node(self, start: int) -> tuple[Any, bool]:
        """A node inside [] or {}, and whether it was a plain scalar."""
        text, at = self.text, start
        self._enter(at)
        tag = anchor = None
        while text[at] in "&!":
            found = NAME.match(text, at + 1) if text[at] == "&" else TAG.match(text, at)
            if not found or (tag if text[at] == "!" else anchor) is not None:
                self._fail("yaml-syntax", "quote a text that begins with & or !", at)
            if text[at] == "!":
                tag = found[0]
                self._known_tag(tag, at)
            else:
                anchor = found[0]
                self.anchors.pop(anchor, None)
            here, at = at, self._skip_flow(found.end())
            if "\n" in text[here:at]:
                self._fail("yaml-syntax", PROPERTY_ALONE, here)
        before, repeated, plain = self.nodes, self.repeated, None
        first = text[at]
        if first in "[{":
            value = self.flow(at)
        elif first in "\"'":
            value = self.quoted(at)
        elif first == "*":
            value = self._alias(at, tag or anchor)
        elif first in ",]}" and (tag or anchor):
            value, plain, self.i = None, "", at
        else:
            plain = self._flow_plain(at)
            value = scalars.resolve(plain)
        length = self.i - start + self.repeated - repeated
        value = self._finish(value, start, tag, anchor, self.i, plain=plain, size=self.nodes - before + 1, length=length)
        return value, plain is not None and tag is None

    def _flow_plain(self, at: int) -> str:
        text = self.text
        found = _FLOW_PLAIN.match(text, at)
        if not found:
            self._fail("yaml-syntax", self._not_plain(at), at)
        value, end = found[0].rstrip(" \t"), found.end()
        while True:
            nxt = self._skip_blank_lines(end)
            breaks = text.count("\n", end, nxt)
            more = _FLOW_MORE.match(text, nxt) if breaks and self._indent_of(nxt) >= self.flow_indent else None
            if not more or (text[nxt - 1] == "\n" and MARKER.match(text, nxt)):
                break
            value += (" " if breaks == 1 else "\n" * (breaks - 1)) + more[0].rstrip(" \t")
            end = more.end()
        self.i = end
        return value

    def _skip_flow(self, at: int) -> int:
        """Next token inside a flow collection, which the end of the file must not cut off."""
        end = self._skip(at)
        if end >= len(self.text):
            self._fail("yaml-syntax", "a [ or { is never closed", at - 1)
        if self.text[end - 1] == "\n" and MARKER.match(self.text, end):
            self._fail("yaml-syntax", "the document ends inside [ or {", end)
        return end

    # Tags, anchors, merges

    def note_if_ambiguous(self, at: int, plain: str, value: Any) -> None:
        """Remember a scalar that YAML 1.2 reads differently."""
        if plain[0] in scalars.NUMERIC_START and scalars.differs_from_yaml_1_2(plain, value):
            self.ambiguous.append((at, plain, _shown(value)))

    def _finish(
        self,
        value: Any,
        start: int,
        tag: str | None,
        anchor: str | None,
        end: int,
        *,
        plain: str | None,
        size: int = 1,
        length: int = 0,
    ) -> Any:
        if tag is not None:
            value = self._apply_tag(tag, value, plain, start)
        elif plain:
            self.note_if_ambiguous(self._skip(start), plain, value)
        if anchor is not None and (tag or anchor not in self.anchors):  # in OpenPAI the inner of two anchors counts
            self.anchors[anchor] = (value, size, length)
        return self._leave(value, end)

    def _add(self, result: Map, merged: set[str], key: Any, value: Any, key_at: int, *, plain_merge: bool) -> None:
        if plain_merge:
            self._merge(result, merged, value, key_at)
            return
        if isinstance(key, List) and any(isinstance(item, List) for item in key):
            self._fail("yaml-syntax", "a list of lists cannot be a key; quote the text", key_at)
        name = key if isinstance(key, str) else _key_text(key)
        if name == "__proto__":
            self._fail("yaml-syntax", "OpenPAI loses a key that is named __proto__; choose another name", key_at)
        if name in result and name not in merged:
            line = self.text.count("\n", 0, result.marks[name]) + 1
            self._fail("yaml-duplicate-key", f"the key '{name}' stands here and on line {line}; keep one", key_at)
        merged.discard(name)
        result[name] = value
        result.marks[name] = key_at

    def _merge(self, result: Map, merged: set[str], value: Any, key_at: int) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, Map):
                self._fail("yaml-alias", "'<<' can only merge a mapping or a list of mappings", key_at)
            self.nodes += len(source)
            self._enter(key_at)
            self.depth -= 1
            for name, item in source.items():
                if name not in result:
                    result[name] = item
                    result.marks[name] = source.marks.get(name, key_at)
                    merged.add(name)

    def _alias(self, at: int, properties: str | None) -> Any:
        if properties:
            self._fail("yaml-alias", "an alias can have no tag and no anchor of its own", at)
        found = NAME.match(self.text, at + 1)
        name = found[0] if found else ""
        if name not in self.anchors:
            self._fail("yaml-alias", f"there is no value with the anchor '&{name}' above; quote the text to keep the star", at)
        self.i = at + 1 + len(name)
        value, size, length = self.anchors[name]
        self.nodes += size
        self.repeated += length
        if self.repeated > LIMITS.REPEATED:
            self._fail("yaml-limit", f"the aliases of this file repeat more than {LIMITS.REPEATED:,} characters", at)
        return value

    def _known_tag(self, tag: str, at: int) -> None:
        if tag not in TAGS:
            self._fail("yaml-tag", f"the tag {tag} is not understood; remove it", at)

    def _apply_tag(self, tag: str, value: Any, plain: str | None, at: int) -> Any:
        source = plain or value
        if tag == "!":
            return source
        try:
            return TAGS[tag](source)
        except (TypeError, ValueError, KeyError):
            self._fail("yaml-tag", f"this value cannot be read as {tag}", self._skip(at))


def _key_text(key: Any) -> str:
    """A key that is not a string, as JavaScript's String() spells it."""
    return to_string(key)


def _shown(value: Any) -> str:
    return f"the text '{value}'" if isinstance(value, str) else to_string(value)
