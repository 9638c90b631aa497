"""Text of others as it may be shown: what could move a cursor, change a terminal or turn a line round is spelled out."""

from __future__ import annotations


class Styled(str):
    """A text with colours or moves of the cursor that are ours; whatever else is in it has been made printable."""

    __slots__ = ()


def printable(text: str, *, keep: str = "", instead: str | None = None) -> str:
    """The text with every character that is none to see escaped, as in `\\x1b`; those in `keep` stay.

    Control characters, escape sequences, marks that change the direction of writing and halves of surrogate pairs are
    escaped; spaces of all widths stay. `instead` stands for each of them where the number of characters has to stay.

    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    unseen = [each for each in set(text) if not (each.isprintable() or each in keep or _is_space(each))]
    return text.translate({ord(each): instead or _escaped(each) for each in unseen})


def cut(text: str, most: int = 100) -> str:
    """The beginning of a text that may be of any length."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _is_space(character: str) -> bool:
    # Zs but U+0020, which is printable: spaces of other widths, of no harm to anybody.
    return character in "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
