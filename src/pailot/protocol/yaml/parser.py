"""From text to values, for every form of YAML we read: recursive descent, a bound on everything."""

from __future__ import annotations

import re

from ..patterns import pattern
from . import scalars
from .document import LIMITS, List, Map, YamlError, new_list, new_map
from .tags import TAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


# A plain scalar on one line: it ends before ': ', ' #' and the end of the line. Possessive quantifiers keep every match
# linear; they stand after single characters only, since Python before 3.11.5 gets them wrong after groups.
_FIRST = r"(?:[^ \t\n,\[\]{}#&*!|>'\"%@`?:-]|[?:-](?=[^ \t\n]))"
_BODY = r"(?:[^ \t\n:#]++|:(?=[^ \t\n])|(?<=[^ \t\n])#|[ \t]++(?=[^ \t\n#]))*"
_PLAIN = pattern(_FIRST + _BODY)
_PLAIN_MORE = pattern(r"(?:[^ \t\n:#]|:(?=[^ \t\n]))" + _BODY)
_FLOW_FIRST = r"(?:[^ \t\n,\[\]{}#&*!|>'\"%@`?:-]|[?:-](?=[^ \t\n,\[\]{}]))"
_FLOW_BODY = r"(?:[^ \t\n:#,\[\]{}]++|:(?=[^ \t\n,\[\]{}])|(?<=[^ \t\n,\[\]{}])#|[ \t]++(?=[^ \t\n#,\[\]{}]))*"
_FLOW_PLAIN = pattern(_FLOW_FIRST + _FLOW_BODY)
_FLOW_MORE = pattern(r"(?:[^ \t\n:#,\[\]{}]|:(?=[^ \t\n,\[\]{}]))" + _FLOW_BODY)

_BLANK = pattern(r"[ \t]*+(?:#[^\n]*+)?(?:\n[ \t]*+(?:#[^\n]*+)?)*")
_END_OF_LINE = pattern(r"(?:[ \t]++#[^\n]*+|[ \t]*+)\n")
_SPACES = pattern(r"[ \t]*+")
_KEY = pattern(r"(" + _FIRST + _BODY + r"|\"(?:[^\"\\\n]++|\\.)*\"|'(?:[^'\n]++|'')*'(?!'))[ \t]*+:(?=[ \t\n])")
_MARKER = pattern(r"(?:---|\.\.\.)(?=[ \t\n])")
_DIRECTIVE = pattern(r"%YAML[ \t]++1\.[0-9]++(?:[ \t]++#[^\n]*+|[ \t]*+)\n")
_NAME = pattern(r"[^ \t\n,\[\]{}]++")
_TAG = pattern(r"![^ \t\n]*+")
_SINGLE = pattern(r"'((?:[^']++|'')*)'(?!')")
_DOUBLE = pattern(r'"((?:[^"\\]++|\\[\s\S])*)"')
# White space before a break stays: OpenPAI keeps it.
_SINGLE_BREAKS = pattern(r"\n[ \t\n]*+")
_DOUBLE_BREAKS = pattern(r"\\\n[ \t\n]*+|\\.|\n[ \t\n]*+")
_HEADER = pattern(r"[|>](?:([-+])([0-9])?|([0-9])([-+])?)?(?:[ \t]++#[^\n]*+|[ \t]*+)\n")
_PROPERTY_ALONE = "a tag or an anchor stands on the line of its value"
_FIRST_LINE = pattern(r"(?: *+\n)*( *+)")
_ESCAPE = pattern(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
    "r": "\r", "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip


class Parser:
    """Reads one document; the methods without underscore serve the line reader too."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.i = 0
        self.flow_indent = 0  # that lines inside [] and {} need to go on with a text
        self.depth = 0
        self.nodes = 0
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.ambiguous: list[tuple[int, str, str]] = []

    # Documents

    def document(self) -> Any:
        self._directives()
        root = self._node(self.i, self._indent_of(self._skip(self.i)) - 1, on_new_line=True)
        end = self._skip(self.i)
        if end < len(self.text):
            rest = self.text[end : end + 4]
            if _MARKER.match(self.text, end) and self._column(end) == 0:
                if rest.startswith("..."):
                    after = self._skip(end + 3)
                    if after >= len(self.text):
                        return root
                    end = after
                self._fail("yaml-documents", "more than one document in the file; keep one job per file", end)
            self._fail("yaml-syntax", self._stray(end), end)
        return root

    def _directives(self) -> None:
        at = self._skip(0)
        while self.text.startswith("%", at) and self._column(at) == 0:
            end = self.text.index("\n", at)
            if not _DIRECTIVE.match(self.text, at):
                self._fail("yaml-syntax", "only the %YAML 1.x directive is understood; remove this line", at)
            at = self._skip(end)
            if not self.text.startswith("---", at) or self._column(at):
                self._fail("yaml-syntax", "a directive needs '---' on the line after it", at)
        if self.text.startswith("---", at) and self._column(at) == 0:
            if not _MARKER.match(self.text, at):
                self._fail("yaml-syntax", "'---' begins a document; put a line break after it, or quote the text", at)
            at += 3
        self.i = at

    # Nodes in block style

    def _node(self, start: int, parent: int, *, on_new_line: bool = False, in_list: bool = False) -> Any:
        """The node after an indicator at `start`, which belongs to a collection indented by `parent`."""
        text = self.text
        self._enter(start)
        at = self._skip(start)
        new_line = on_new_line or "\n" in text[start:at]
        column = self._column(at)
        if at >= len(text) or (new_line and self._ends_here(at, column, parent, in_list)):
            return self._leave(None, start)
        tag = anchor = None
        alone = True
        while text[at] in "&!":
            if text[at] == "&" and anchor is None:
                found = _NAME.match(text, at + 1)
                if not found:
                    self._fail("yaml-syntax", "an anchor needs a name after '&'; quote the value to keep the sign", at)
                anchor, after = found[0], found.end()
                self.anchors.pop(anchor, None)  # until the value is complete, it cannot be named
            elif text[at] == "!" and tag is None:
                found = _TAG.match(text, at)
                assert found
                tag, after = found[0], found.end()
                self._known_tag(tag, at)
            else:
                self._fail("yaml-syntax", "a value can have one tag and one anchor", at)
            nxt = self._skip(after)
            alone = "\n" in text[after:nxt]
            if alone:
                new_line, column = True, self._column(nxt)
                if nxt >= len(text) or self._ends_here(nxt, column, parent, in_list):
                    if nxt < len(text) and parent < 0:
                        self._fail("yaml-syntax", _PROPERTY_ALONE, start)
                    return self._finish(None, start, tag, None, after, plain="")
            at = nxt
        nodes_before = self.nodes
        if text[at] == "*":
            value, plain = self._alias(at, tag or anchor), None
        else:
            if not alone and _KEY.match(text, at):
                self._fail("yaml-syntax", "the tag or anchor of a mapping stands on the line before it", start)
            value, plain = self._content(at, parent, column, collections=alone and (new_line or in_list))
            if (tag or anchor) and alone and (text[at] in "[{" or not isinstance(value, Map | List)):
                self._fail("yaml-syntax", _PROPERTY_ALONE, start)
        return self._finish(value, start, tag, anchor, self.i, plain=plain, size=self.nodes - nodes_before + 1)

    def _content(self, at: int, parent: int, column: int, *, collections: bool) -> tuple[Any, str | None]:
        """The node at `at`; for a plain scalar also its text, since a tag may read it anew."""
        text, first = self.text, self.text[at]
        follows = text[at + 1]
        if collections:
            if first == "-" and follows in " \t\n":
                return self._list(at, column), None
            if (first == "?" and follows in " \t\n") or _KEY.match(text, at):
                return self._map(at, column), None
        if first in "|>\"'[{":
            return self.inline(at, parent), None
        plain = self._plain(at, parent + 1)
        return scalars.resolve(plain), plain

    def _finish(
        self, value: Any, start: int, tag: str | None, anchor: str | None, end: int, *, plain: str | None, size: int = 1
    ) -> Any:
        if tag is not None:
            value = self._apply_tag(tag, value, plain, start)
        elif plain:
            self.note_if_ambiguous(self._skip(start), plain, value)
        if anchor is not None and (tag or anchor not in self.anchors):  # in OpenPAI the inner of two anchors counts
            self.anchors[anchor] = (value, size)
        return self._leave(value, end)

    def _map(self, at: int, indent: int) -> Map:
        result, merged = new_map(at), set[str]()
        while True:
            self._entry(at, indent, result, merged)
            at = self._skip(self.i)
            if not self._next_entry(indent, at):
                return result

    def _next_entry(self, indent: int, at: int) -> bool:
        """Whether the line that begins at `at` goes on with a collection of this indent."""
        text = self.text
        if at >= len(text):
            return False
        column = self._column(at)
        if column == indent:
            if "\t" in text[at - column : at]:
                self._fail("yaml-syntax", "a tab is used for indentation; use spaces", at)
            return not (column == 0 and _MARKER.match(text, at))
        if column > indent:
            self._fail("yaml-syntax", self._bad_indent(at, column, indent), at)
        return False

    def _entry(self, at: int, indent: int, result: Map, merged: set[str]) -> None:
        text = self.text
        if text[at] == "?" and text[at + 1] in " \t\n":
            key_value = self._node(at + 1, indent, in_list=True)
            colon = self._skip(self.i)
            explicit = text.startswith(":", colon) and text[colon + 1 : colon + 2] in (" ", "\t", "\n")
            if not (explicit and self._column(colon) == self._indent_of(colon) == indent):
                self._add(result, merged, key_value, None, at, plain_merge=False)
                return
            value = self._node(colon + 1, indent, in_list=True)
            self._add(result, merged, key_value, value, at, plain_merge=False)
            return
        found = _KEY.match(text, at)
        if not found:
            self._fail("yaml-syntax", self._not_a_key(at), at)
        raw = found[1]
        plain = raw[0] not in "\"'"
        if plain:
            raw = raw.rstrip(" \t")
            key: Any = scalars.resolve(raw)
        else:
            key = self.quoted(at)
        after = found.end()
        value_at = self._skip(after)
        if "\n" not in text[after:value_at] and text[value_at] == "-" and text[value_at + 1] in " \t\n":
            self._fail("yaml-syntax", "a list cannot begin on the line of its key; put '-' on the next line", value_at)
        value = self._node(after, indent)
        self._end_line()
        self._add(result, merged, key, value, at, plain_merge=plain and raw == "<<")

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

    def _list(self, at: int, indent: int) -> List:
        result = new_list(at)
        while True:
            result.append(self._node(at + 1, indent, in_list=True))
            empty = self.i == at + 1
            result.marks.append(at if empty else self._skip(at + 1))
            self._end_line()
            at = self._skip(self.i)
            if not self._next_item(indent, at):
                if empty and self._is_item(at):
                    self._fail("yaml-syntax", "OpenPAI reads on after an empty last item; write null", result.marks[-1])
                return result

    def _next_item(self, indent: int, at: int) -> bool:
        return self._next_entry(indent, at) and self._is_item(at)

    def _is_item(self, at: int) -> bool:
        return self.text[at : at + 1] == "-" and self.text[at + 1] in " \t\n"

    def _ends_here(self, at: int, column: int, parent: int, in_list: bool) -> bool:
        """Whether the next content belongs to a parent, so that the node we look for is empty."""
        text = self.text
        if column == 0 and _MARKER.match(text, at):
            return True
        is_item = self._is_item(at)
        if column > parent or (column == parent and is_item and not in_list):
            if "\t" in text[at - column : at] and (text[at] not in "[{\"'" or self._indent_of(at) <= parent):
                self._fail("yaml-syntax", "a tab is used for indentation; use spaces", at)
            return False
        return True

    # Scalars

    def inline(self, at: int, parent: int) -> Any:
        """A quoted text, block text or flow collection that begins at `at`."""
        first = self.text[at]
        if first in "|>":
            return self.block_scalar(at, parent)
        self.flow_indent = parent + 1
        return self.quoted(at) if first in "\"'" else self.flow(at)

    def note_if_ambiguous(self, at: int, plain: str, value: Any) -> None:
        """Remember a scalar that YAML 1.2 reads differently."""
        if plain[0] in scalars.NUMERIC_START and scalars.differs_from_yaml_1_2(plain, value):
            self.ambiguous.append((at, plain, _shown(value)))

    def _plain(self, at: int, indent: int) -> str:
        text = self.text
        found = _PLAIN.match(text, at)
        if not found:
            self._fail("yaml-syntax", self._not_plain(at), at)
        value, end = found[0].rstrip(" \t"), found.end()
        while _SPACES.match(text, end).end() < len(text) and text[_SPACES.match(text, end).end()] == "\n":  # type: ignore[union-attr]  # matches everywhere
            nxt = end
            breaks = 0
            while True:
                nxt = _SPACES.match(text, nxt).end()  # type: ignore[union-attr]  # matches everywhere
                if nxt >= len(text) or text[nxt] != "\n":
                    break
                breaks += 1
                nxt += 1
            column = self._indent_of(nxt)
            if nxt >= len(text) or column < indent or (text[nxt - 1] == "\n" and _MARKER.match(text, nxt)):
                break
            more = _PLAIN_MORE.match(text, nxt)
            if not more:
                break
            value += " " if breaks == 1 else "\n" * (breaks - 1)
            value += more[0].rstrip(" \t")
            end = more.end()
        self.i = end
        return value

    def quoted(self, at: int) -> str:
        text = self.text
        single = text[at] == "'"
        found = (_SINGLE if single else _DOUBLE).match(text, at)
        if not found:
            self._fail("yaml-syntax", f"the quote {text[at]} that opens here is never closed", at)
        self.i = found.end()
        body = found[1]
        if "\n" in body:
            marker = re.compile(r"\n(?:---|\.\.\.)(?=[ \t\n])").search(text, at, found.end())
            if marker:
                self._fail("yaml-syntax", "the document ends inside a quoted text", at)
            body = (_SINGLE_BREAKS if single else _DOUBLE_BREAKS).sub(_fold_quoted, body)
        if single:
            return body.replace("''", "'")
        return self._unescape(body, at) if "\\" in body else body

    def _unescape(self, body: str, at: int) -> str:
        def character(found: re.Match[str]) -> str:
            code = found[1] or found[2] or found[3]
            if code:
                number = int(code, 16)
                if number > 0x10FFFF:
                    self._fail("yaml-syntax", f"there is no character \\U{code}", at)
                return chr(number)
            if found[4] not in _ESCAPES:
                self._fail("yaml-syntax", f"unknown escape '\\{found[4]}'; write \\\\ for a backslash or use '…' quotes", at)
            return _ESCAPES[found[4]]

        value = _ESCAPE.sub(character, body)
        if any("\ud800" <= c <= "\udfff" for c in value):
            try:
                value = value.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                self._fail("yaml-encoding", "half of a surrogate pair is not a character", at)
        return value

    def block_scalar(self, at: int, parent: int) -> str:
        text = self.text
        header = _HEADER.match(text, at)
        if not header:
            self._fail("yaml-syntax", "after | or > only -, + and a digit may stand on this line", at)
        chomp = header[1] or header[4] or ""
        digit = header[2] or header[3]
        body = header.end()
        indent = parent + int(digit) if digit else 0
        if not digit:
            first = _FIRST_LINE.match(text, body)
            assert first
            indent = len(first[1])
            longest = max((len(line) for line in text[body : first.start(1)].split("\n")), default=0)
            if indent <= parent or first.end() >= len(text):
                indent = max(parent + 1, longest)
            elif longest > indent:
                self._fail("yaml-syntax", "an empty line of this text is indented deeper than its first line", at)
        if indent < 1 or digit == "0":
            self._fail("yaml-syntax", "the lines of a block text are indented by at least one space", at)
        block = _block_lines(indent).match(text, body)
        assert block
        raw = block[0]
        self.i = body + len(raw) - 1 if raw else body - 1
        lines = [line[indent:] for line in raw.split("\n")[:-1]]
        kept = len(lines)
        while kept and not lines[kept - 1]:
            kept -= 1
        content = "\n".join(lines[:kept]) if text[at] == "|" else _fold_block(lines[:kept])
        if chomp == "-" or (not kept and not chomp):
            return content
        return content + "\n" * (1 + len(lines) - kept if chomp == "+" and kept else len(lines) if chomp == "+" else 1)

    def _alias(self, at: int, properties: str | None) -> Any:
        if properties:
            self._fail("yaml-alias", "an alias can have no tag and no anchor of its own", at)
        found = _NAME.match(self.text, at + 1)
        name = found[0] if found else ""
        if name not in self.anchors:
            self._fail("yaml-alias", f"there is no value with the anchor '&{name}' above; quote the text to keep the star", at)
        self.i = at + 1 + len(name)
        value, size = self.anchors[name]
        self.nodes += size
        return value

    # Flow style

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
            found = _NAME.match(text, at + 1) if text[at] == "&" else _TAG.match(text, at)
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
                self._fail("yaml-syntax", _PROPERTY_ALONE, here)
        before, plain = self.nodes, None
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
        value = self._finish(value, start, tag, anchor, self.i, plain=plain, size=self.nodes - before + 1)
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
            if not more or (text[nxt - 1] == "\n" and _MARKER.match(text, nxt)):
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
        if self.text[end - 1] == "\n" and _MARKER.match(self.text, end):
            self._fail("yaml-syntax", "the document ends inside [ or {", end)
        return end

    # Tags

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

    # Bookkeeping

    def _enter(self, at: int) -> None:
        self.nodes += 1
        self.depth += 1
        if self.depth > LIMITS.DEPTH:
            self._fail("yaml-limit", f"nested deeper than {LIMITS.DEPTH} levels", at)
        if self.nodes > LIMITS.NODES:
            self._fail("yaml-limit", f"more than {LIMITS.NODES} values, aliases counted in full", at)

    def _leave(self, value: Any, end: int) -> Any:
        self.depth -= 1
        self.i = end
        return value

    def _skip(self, at: int) -> int:
        """Past white space, comments and empty lines."""
        end = _BLANK.match(self.text, at).end()  # type: ignore[union-attr]  # matches everywhere
        return end

    def _skip_blank_lines(self, at: int) -> int:
        text = self.text
        while True:
            at = _SPACES.match(text, at).end()  # type: ignore[union-attr]  # matches everywhere
            if at >= len(text) or text[at] != "\n":
                return at
            at += 1

    def _column(self, at: int) -> int:
        return at - self.text.rfind("\n", 0, at) - 1

    def _indent_of(self, at: int) -> int:
        """Spaces at the start of the line that `at` is the first content of."""
        start = self.text.rfind("\n", 0, at) + 1
        end = start
        while end < at and self.text[end] == " ":
            end += 1
        return end - start

    def _end_line(self) -> None:
        at = self.i
        if at >= len(self.text) or (at and self.text[at - 1] == "\n"):
            return
        if not _END_OF_LINE.match(self.text, at):
            stray = _SPACES.match(self.text, at).end()  # type: ignore[union-attr]  # matches everywhere
            self._fail("yaml-syntax", self._stray(stray), stray)

    # Words for what went wrong

    def _fail(self, code: str, message: str, at: int) -> NoReturn:
        raise YamlError(code, message, min(at, len(self.text) - 1))

    def _stray(self, at: int) -> str:
        rest = self._rest_of_line(at)
        if rest.startswith(":"):
            if re.fullmatch(r"[\w.$ -]+", self.text[self.text.rfind("\n", 0, at) + 1 : at]):
                return "this line goes on with the value above it, where no key can stand; check the indentation"
            return "a second ': ' on this line; quote the value if the colon belongs to it"
        if rest.startswith("<%"):
            return "a template cannot follow here; quote the whole value: '… <% … %> …'"
        return f"{rest[:30]!r} is not expected here; check the indentation, or quote the value"

    def _not_a_key(self, at: int) -> str:
        rest = self._rest_of_line(at)
        if rest.startswith("- ") or rest == "-":
            return "a list item stands between 'key: value' lines; check the indentation"
        if re.match(r"[A-Za-z_][\w-]*:\S", rest):
            return f"a space is missing after the colon in {rest[:30]!r}"
        return f"expected 'key: value', found {rest[:30]!r}; check the indentation"

    def _not_plain(self, at: int) -> str:
        first = self.text[at]
        if first in "@`%":
            return f"a text cannot begin with {first}; put it in quotes"
        if first == ",":
            return "an item is missing before this comma; quote a text that begins with one"
        if first in "]}":
            return f"{first!r} has no opening bracket here; quote a text that begins with it"
        if first == "\t":
            return "a tab is used for indentation; use spaces"
        return f"a value is expected here, found {self._rest_of_line(at)[:30]!r}; put a text in quotes"

    def _flow_problem(self, at: int, closing: str) -> str:
        start = self.text.rfind("\n", 0, at) + 1
        if "<%" in self.text[start:at] or "<%" in self._rest_of_line(at):
            return f"expected ',' or '{closing}'; inside [] and {{}} a template must be quoted: '<% … %>'"
        return f"expected ',' or '{closing}', found {self._rest_of_line(at)[:30]!r}"

    def _bad_indent(self, at: int, column: int, indent: int) -> str:
        if "\t" in self.text[at - column : at]:
            return "a tab is used for indentation; use spaces"
        return f"this line is indented by {column} spaces, the entries before it by {indent}; align it or quote the value above"

    def _rest_of_line(self, at: int) -> str:
        end = self.text.find("\n", at)
        return self.text[at : end if end >= 0 else len(self.text)].rstrip()


def _fold_quoted(found: re.Match[str]) -> str:
    """A line break in quotes is a space, n of them are n-1 breaks, one after a backslash is nothing."""
    breaks = found[0]
    if breaks[0] == "\\":
        return "" if breaks[1] == "\n" else breaks
    return "\n" * (breaks.count("\n") - 1) or " "


def _fold_block(lines: list[str]) -> str:
    """'>' text: single breaks between unindented lines become spaces."""
    out, pending, more_before = "", 0, True
    for position, line in enumerate(lines):
        if not line:
            pending += 1
            continue
        more = line[0] in " \t"
        if position == pending and not out:
            out = "\n" * pending
        elif more or more_before:
            out += "\n" * (pending + 1)
        else:
            out += "\n" * pending if pending else " "
        out += line
        pending, more_before = 0, more
    return out


_block_cache: dict[int, re.Pattern[str]] = {}


def _block_lines(indent: int) -> re.Pattern[str]:
    if indent not in _block_cache:
        if len(_block_cache) > 256:
            _block_cache.clear()
        _block_cache[indent] = re.compile(rf"(?:(?: {{{indent}}}[^\n]*+| *+)\n)*")
    return _block_cache[indent]


def _key_text(key: Any) -> str:
    """A key that is not a string, as JavaScript's String() spells it."""
    from ..javascript import to_string

    return to_string(key)


def _shown(value: Any) -> str:
    from ..javascript import to_string

    return f"the text '{value}'" if isinstance(value, str) else to_string(value)
