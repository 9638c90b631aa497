"""From text to values, for every form of YAML we read: recursive descent, a bound on everything."""

from __future__ import annotations

from ..lazy_regex import pattern
from . import scalars
from .cursor import MARKER, SPACES
from .document import List, Map, new_list, new_map
from .flow import NAME, PROPERTY_ALONE, TAG, Flow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A plain scalar on one line: it ends before ': ', ' #' and the end of the line. Possessive quantifiers keep every match
# linear; they stand after single characters only, since Python before 3.11.5 gets them wrong after groups.
_FIRST = r"(?:[^ \t\n,\[\]{}#&*!|>'\"%@`?:-]|[?:-](?=[^ \t\n]))"
_BODY = r"(?:[^ \t\n:#]++|:(?=[^ \t\n])|(?<=[^ \t\n])#|[ \t]++(?=[^ \t\n#]))*"
_PLAIN = pattern(_FIRST + _BODY)
_PLAIN_MORE = pattern(r"(?:[^ \t\n:#]|:(?=[^ \t\n]))" + _BODY)
_KEY = pattern(r"(" + _FIRST + _BODY + r"|\"(?:[^\"\\\n]++|\\.)*\"|'(?:[^'\n]++|'')*'(?!'))[ \t]*+:(?=[ \t\n])")
_DIRECTIVE = pattern(r"%YAML[ \t]++1\.[0-9]++(?:[ \t]++#[^\n]*+|[ \t]*+)\n")


class Parser(Flow):
    """Reads one document; the methods without underscore serve the line reader too."""

    # Documents

    def document(self) -> Any:
        self._directives()
        root = self._node(self.i, self._indent_of(self._skip(self.i)) - 1, on_new_line=True)
        end = self._skip(self.i)
        if end < len(self.text):
            rest = self.text[end : end + 4]
            if MARKER.match(self.text, end) and self._column(end) == 0:
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
            if not MARKER.match(self.text, at):
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
                found = NAME.match(text, at + 1)
                if not found:
                    self._fail("yaml-syntax", "an anchor needs a name after '&'; quote the value to keep the sign", at)
                anchor, after = found[0], found.end()
                self.anchors.pop(anchor, None)  # until the value is complete, it cannot be named
            elif text[at] == "!" and tag is None:
                found = TAG.match(text, at)
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
                        self._fail("yaml-syntax", PROPERTY_ALONE, start)
                    return self._finish(None, start, tag, None, after, plain="")
            at = nxt
        nodes_before, repeated_before = self.nodes, self.repeated
        if text[at] == "*":
            value, plain = self._alias(at, tag or anchor), None
        else:
            if not alone and _KEY.match(text, at):
                self._fail("yaml-syntax", "the tag or anchor of a mapping stands on the line before it", start)
            value, plain = self._content(at, parent, column, collections=alone and (new_line or in_list))
            if (tag or anchor) and alone and (text[at] in "[{" or not isinstance(value, Map | List)):
                self._fail("yaml-syntax", PROPERTY_ALONE, start)
        length = self.i - start + self.repeated - repeated_before
        return self._finish(value, start, tag, anchor, self.i, plain=plain, size=self.nodes - nodes_before + 1, length=length)

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
            return not (column == 0 and MARKER.match(text, at))
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
        if column == 0 and MARKER.match(text, at):
            return True
        is_item = self._is_item(at)
        if column > parent or (column == parent and is_item and not in_list):
            if "\t" in text[at - column : at] and (text[at] not in "[{\"'" or self._indent_of(at) <= parent):
                self._fail("yaml-syntax", "a tab is used for indentation; use spaces", at)
            return False
        return True

    def inline(self, at: int, parent: int) -> Any:
        """A quoted text, block text or flow collection that begins at `at`."""
        first = self.text[at]
        if first in "|>":
            return self.block_scalar(at, parent)
        self.flow_indent = parent + 1
        return self.quoted(at) if first in "\"'" else self.flow(at)

    def _plain(self, at: int, indent: int) -> str:
        text = self.text
        found = _PLAIN.match(text, at)
        if not found:
            self._fail("yaml-syntax", self._not_plain(at), at)
        value, end = found[0].rstrip(" \t"), found.end()
        while SPACES.match(text, end).end() < len(text) and text[SPACES.match(text, end).end()] == "\n":  # type: ignore[union-attr]  # matches everywhere
            nxt = end
            breaks = 0
            while True:
                nxt = SPACES.match(text, nxt).end()  # type: ignore[union-attr]  # matches everywhere
                if nxt >= len(text) or text[nxt] != "\n":
                    break
                breaks += 1
                nxt += 1
            column = self._indent_of(nxt)
            if nxt >= len(text) or column < indent or (text[nxt - 1] == "\n" and MARKER.match(text, nxt)):
                break
            more = _PLAIN_MORE.match(text, nxt)
            if not more:
                break
            value += " " if breaks == 1 else "\n" * (breaks - 1)
            value += more[0].rstrip(" \t")
            end = more.end()
        self.i = end
        return value
