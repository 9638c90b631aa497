"""The way into the reader: what is refused at once, then the quick lines, then the general parser."""

from __future__ import annotations

from ..lazy_regex import pattern
from . import scalars
from .document import LIMITS, Document, YamlError
from .fast_path import NotPlainLines, read_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .parser import Parser


def parse(text: str) -> Document:
    """Read one document; raises YamlError with the first thing that is wrong."""
    if len(text) > LIMITS.BYTES or len(text.encode("utf-8", "replace")) > LIMITS.BYTES:
        raise YamlError("yaml-limit", "the file is larger than 1 MiB", 0)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.removeprefix("\ufeff")
    bad = None if _is_plain_ascii(text) else _UNPRINTABLE.search(text)
    if bad:
        raise YamlError("yaml-encoding", _unprintable_message(bad[0]), bad.start())
    if text[-1:] != "\n":
        text += "\n"
    general = _General(text)
    try:
        root = read_lines(text, general)
    except NotPlainLines:
        general = _General(text)
        root = general.document()
    return Document(text, root, general.ambiguous)


_ASCII_TEXT = b"\t\n" + bytes(range(0x20, 0x7F))
_UNPRINTABLE = pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


class _General:
    """The general parser, loaded when something needs it: most files do not, and it is half of the reader's start-up."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ambiguous: list[tuple[int, str, str]] = []
        self._parser: Parser | None = None

    @property
    def i(self) -> int:
        return self._loaded().i

    @property
    def depth(self) -> int:
        return self._loaded().depth

    @depth.setter
    def depth(self, value: int) -> None:
        self._loaded().depth = value

    @property
    def nodes(self) -> int:
        return self._parser.nodes if self._parser else 0

    def document(self) -> Any:
        return self._loaded().document()

    def inline(self, at: int, parent: int) -> Any:
        return self._loaded().inline(at, parent)

    def note_if_ambiguous(self, at: int, plain: str, value: Any) -> None:
        if scalars.differs_from_yaml_1_2(plain, value):
            self._loaded().note_if_ambiguous(at, plain, value)

    def _loaded(self) -> Parser:
        if self._parser is None:
            from .parser import Parser

            self._parser = Parser(self.text)
            self.ambiguous = self._parser.ambiguous
        return self._parser


def _is_plain_ascii(text: str) -> bool:
    return text.isascii() and not text.encode().translate(None, _ASCII_TEXT)


def _unprintable_message(character: str) -> str:
    if character == "\0":
        return "a NUL byte: this is not a text file"
    if "\ud800" <= character <= "\udfff":
        return "half of a surrogate pair: this is not valid text"
    return f"the control character U+{ord(character):04X} is not allowed; write it as an escape in double quotes"
