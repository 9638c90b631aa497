"""OpenPAI's YAML reader and ours side by side: one value for both, or one of the differences listed here."""

from __future__ import annotations

import base64
import random
import re
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pailot.protocol.js_semantics import to_string
from pailot.protocol.yaml import Timestamp, YamlError, parse

from ..support.oracle import ROOT, Oracle

pytestmark = pytest.mark.node
many = settings(max_examples=10 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])


# Texts


def several(text: str) -> list[str]:
    return [each.strip() for each in text.strip().split("¦")]


# Scalars of every kind, right and wrong; some are cut off on purpose.
SCALARS = several(r"""
    a ¦ b c ¦ yes ¦ y ¦ true ¦ True ¦ tRue ¦ null ¦ NULL ¦ ~ ¦ << ¦ = ¦ é ¦ a#b ¦ a:b ¦ :a ¦ -a ¦ ?a ¦ a,b ¦ a]b ¦ a}b
    ¦ %a ¦ @a ¦ `a ¦ 0 ¦ 1 ¦ -1 ¦ +1 ¦ 01 ¦ 010 ¦ 08 ¦ -0 ¦ +0 ¦ 00 ¦ 1_0 ¦ 1__0_ ¦ 0x1F ¦ -0x1F ¦ 0b11 ¦ 0o17 ¦ 12:30
    ¦ 1:2 ¦ 1:60 ¦ -1:2:3 ¦ 190:20:30 ¦ 1:2:3.5 ¦ 9:59.1_5 ¦ 1. ¦ 0. ¦ .5 ¦ -.5 ¦ 1e3 ¦ 1.5e3 ¦ 1e-7 ¦ 1e22 ¦ 1e400
    ¦ ._1e3 ¦ 685_230.15 ¦ 1.2.3 ¦ 123456789012345678901 ¦ .inf ¦ -.INF ¦ .nan ¦ .NaN ¦ 2019-01-01 ¦ 2019-1-1
    ¦ 2019-1-1 1:02:03 ¦ 2019-13-45 ¦ 0000-00-00 ¦ 2001-12-14t21:59:43.10-05:00 ¦ 9999-12-31 23:59:59 -1 ¦ '' ¦ ""
    ¦ 's' ¦ "q" ¦ 'it''s' ¦ "a\nb" ¦ "x\u00e9" ¦ "\x41\U0001F600" ¦ "\q" ¦ " ¦ ' ¦ 'a ¦ "a\" ¦ <% $p.x %>
    ¦ '<% $p.x[0] %>' ¦ a <% x %> b ¦ [1, 2] ¦ {a: 1} ¦ [a, b: c] ¦ {a, b: } ¦ {"a":1} ¦ ["a":1] ¦ [<% x %>]
    ¦ {a: {b: [c]}} ¦ [[], {}] ¦ [a ,b] ¦ {a:b} ¦ {a : b} ¦ [a: ] ¦ {a: b, a: c} ¦ [ ¦ { ¦ ] ¦ } ¦ [a ¦ {a: b ¦ &x a
    ¦ *x ¦ &x [a] ¦ &x {k: 1} ¦ {<<: *x} ¦ [<<: *x] ¦ {<<: [*x, {b: 1}]} ¦ & ¦ * ¦ - ¦ ? ¦ : ¦ - a ¦ a: b ¦ ? a ¦ ! 1
    ¦ !!str ¦ !!str 1 ¦ !!int "3" ¦ !!int 3.0 ¦ !!float 3 ¦ !!float 0x1 ¦ !!binary aGk= ¦ !!binary aGk ¦ !!set {a, b}
    ¦ !!null ~ ¦ !!bool yes ¦ !!bool true ¦ !!timestamp 2001-01-01 ¦ !!map {a: 1} ¦ !!seq [a] ¦ !!omap [a: 1]
    ¦ !!pairs [a: 1, a: 2] ¦ !foo x ¦ !!str &x a ¦ &x !!str a ¦ # c ¦ a # c ¦ a # ¦ --- ¦ ... ¦ %YAML 1.2
""")
SCALARS += ["a\tb", '"a\\\n  b"', '"a\n\n  b "', "'a\n\n  b'", "'a \n b'", "[a,\n  b]", "{a: b\n  c}", "[a # c\n  ,b]"]
BLOCK_SCALARS = ["|", ">", "|-", ">-", "|+", ">+", "|2", ">1-", "|+2", "| # c", "> ", "|x"]
BLOCK_LINES = ["foo", "bar baz", "  deeper", "\ttab", "# no", "a: b", "- a", "", " ", "<% x %>"]
CONTINUATIONS = ["more", "and: x", "# c", "- z", '"q"', "a #c", ""]
KEYS = several(r"""a¦b¦c¦key¦k y¦1¦1.0¦1e3¦010¦true¦null¦~¦'s'¦"q"¦"\n"¦<<¦x-y¦x.y¦a:b¦$x¦-a¦?x¦2019-01-01¦é¦0x1¦a#b¦a #b""")
ODD_KEYS = ["[a]", "{a: 1}", "&z k", "!!str t", "*x", "|", "- a", "'a\n b'", "? k", "__proto__", "toString"]
FILLING = ["", "", "   ", "# x", "  # y"]
JOBS = [file.read_text() for file in sorted((ROOT / "examples").glob("*/*.yaml"))]
SIGNS = " \n\r:-#\"'[]{}|>,&*!?%\tab1<=.~é"


class Writer:
    """Writes YAML-like texts by chance; a seed gives the same text again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def sometimes(self, chance: float) -> bool:
        return self.random.random() < chance

    def scalar(self, indent: int) -> str:
        if self.sometimes(0.1):
            margin = " " * (indent + self.pick([1, 2, 2, 2, 4]))
            lines = self.random.choices(BLOCK_LINES, k=self.random.randint(0, 5))
            return "\n".join([self.pick(BLOCK_SCALARS), *(line and margin + line for line in lines)])
        text = self.pick(SCALARS)
        if self.sometimes(0.07):
            text += "\n" + " " * (indent + self.random.randint(0, 3)) + self.pick(CONTINUATIONS)
        return text

    def document(self) -> str:
        text = self.block(self.pick([0, 0, 0, 2]))
        if self.sometimes(0.05):
            text = self.pick(["---\n", "--- ", "---\t", "%YAML 1.2\n---\n", "# c\n\n", "\ufeff", "...\n", "\n  \n", "---"]) + text
        if self.sometimes(0.05):
            text += self.pick(["\n---", "\n...", "\n...\n# c\n", "\n--- a", "\n\n", "\n  ", "\n\t", " # c", "\n... a"])
        return text.replace("\n", "\r\n") if self.sometimes(0.02) else text

    def block(self, indent: int = 0, depth: int = 0) -> str:
        """A mapping or a list over several lines, its first line indented too; now and then only a scalar."""
        margin = " " * indent
        kind = "scalar" if depth > 3 or self.sometimes(0.2) else self.pick(["map", "map", "list"])
        if kind == "scalar":
            return margin + self.scalar(indent)
        lines = []
        for number in range(self.random.randint(1, 4)):
            lines.append(margin + (self.entry(number, indent, depth) if kind == "map" else self.item(indent, depth)))
            if self.sometimes(0.05):
                lines.append(self.pick(FILLING))
        return "\n".join(lines)

    def entry(self, number: int, indent: int, depth: int) -> str:
        key = self.pick(ODD_KEYS if self.sometimes(0.15) else KEYS) if self.sometimes(0.3) else f"k{number}"
        if self.sometimes(0.05):
            return f"? {key}\n{' ' * indent}: {self.scalar(indent)}" if self.sometimes(0.7) else f"? {key}"
        key += self.pick([" :", ":\t", ":  "]) if self.sometimes(0.1) else ":"
        if self.sometimes(0.4):
            properties = self.pick([" &x", "  # c", " !!map", " !!seq", " ?"]) if self.sometimes(0.2) else ""
            return key + properties + "\n" + self.block(indent + self.pick([0, 1, 2, 2, 2, 4]), depth + 1)
        return key + self.pick([" ", " ", " ", "", "  "]) + self.scalar(indent)

    def item(self, indent: int, depth: int) -> str:
        if self.sometimes(0.3):
            inner = self.block(indent + 2, depth + 1)
            return "- " + inner.lstrip(" ") if self.sometimes(0.6) else "-\n" + inner
        return "-" + self.pick([" ", " ", " ", "   ", "", "\t"]) + self.scalar(indent)

    def piece(self, files: list[str]) -> str:
        """Some lines of a file, from anywhere in it."""
        lines = self.pick(files).splitlines()
        start = self.random.randrange(len(lines))
        return dedent("\n".join(lines[start : start + self.random.randint(3, 25)]))

    def change(self, text: str) -> str:
        """The text with a few characters replaced, inserted or removed."""
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randint(0, len(text))
            text = text[:at] + self.pick(["", *SIGNS]) + text[at + self.random.randint(0, 1) :]
        return text


# What js-yaml accepts and we refuse, each with a message. Nothing else may differ: no text that both accept
# has two values, and none that js-yaml refuses is accepted by us.


class Refused(NamedTuple):
    what: str
    example: str
    place: str
    """A pattern for the text around our error, with ⌖ where it stands."""


PROPERTY = r"(?:[&!]\S*[ \t]*)+"
KEY = r"(?:\?\s+)?[\"']?"
REFUSED = [
    # js-yaml reads on where YAML ends a value or a line.
    Refused("more after a quoted text or a closing bracket", "a: 'b' c: d", r"[\"'\]}]\s*⌖"),
    Refused("a comment right after a quote or a bracket", "a: 'b'#c", r"[\"'\]}]⌖#"),
    Refused("an item left empty between commas", "[a,,b]", r"⌖,"),
    Refused("an entry of [] that begins with a colon", "[: a]", r"⌖:"),
    Refused("an explicit key on the line of another or in []", "a: ? b", r"⌖\?\s"),
    Refused("an explicit key that is a list below its '?'", "?\n- a", r"\?\s(?:.*\n)*? *⌖-\s"),
    Refused("tabs before a value, where they show no depth", "a:\n\t- b", r"\t[ \t]*⌖"),
    Refused("an empty line that is indented deeper than the text below", "a: |\n   \n  # b", r"⌖[|>].*\n(?: *\n)* +\n"),
    Refused("a directive that is not %YAML", "%A b\n---\nc", r"⌖%"),
    Refused("a directive with '---' indented below", "%YAML 1.2\n ---\na", r"%.*\n\s*⌖---"),
    Refused("a character beyond the last one", '"\\U00110000"', r"⌖\".*\\U"),
    Refused("half of a surrogate pair", '"\\ud800"', r"⌖\".*\\u"),
    Refused("a control character in quotes or in a comment", "a: b # \x01", "⌖[\x01-\x1f\x7f-\x9f]"),
    # js-yaml has keys that we do not read.
    Refused("a list or a mapping as the first key", "[a]: b", r"[\]}]\s*⌖:"),
    Refused("a list or a mapping as a key", "a: b\n[c]: d", r"^ *⌖[\[{].*"),
    Refused("a tag, an anchor or an alias before a key", "a: b\n&c d: e", r"^ *⌖(?:\*|[&!]).*:\s"),
    Refused("a tag or an anchor before an explicit key", "? &a b: c", rf"⌖\s+{PROPERTY}.*:\s"),
    # js-yaml's value would surprise: it loses, overlooks or misplaces something.
    Refused("a key named __proto__", "__proto__: a", rf"⌖{KEY}__proto__"),
    Refused("an empty last item before an outer item", "- -\n- a", r"⌖-(?:\s+#.*|\s*)\n(?:\s*(?:#.*)?\n)*\s*-"),
    Refused("a tag or an anchor above its value", "!!str\n1", rf"⌖(?:\s|#.*\n)*{PROPERTY}(?:#.*)?\n"),
    Refused("an alias of an empty value", "a: &x\nb: *x", r"&(\S+)\s(?:.*\n)*.*⌖\*\1"),
    Refused("an alias inside the value that it names", "a: &x [*x]", r"&(\S+)\s(?:.*\n)*.*⌖\*\1"),
    Refused("text glued to '---'", "---a", r"^⌖---\S"),
    Refused("a file that is one block text without indentation", "|\na", rf"\A(?:%.*|---|#.*|{PROPERTY}|\s)*⌖[|>]"),
    Refused("a merge of something that is no mapping", "<<: [[a]]", rf"⌖{KEY}<<"),
    # js-yaml knows more tags, and loses those of a block text.
    Refused("a tag in its long form", "!<tag:yaml.org,2002:str> a", r"⌖!<"),
    Refused("binary data with wrong padding", "!!binary ab======", r"⌖!!binary .*="),
]


def is_known(text: str, error: YamlError) -> bool:
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff") + "\n"
    shown = text[: error.offset] + "⌖" + text[error.offset :]
    return any(re.search(each.place, shown, re.MULTILINE) for each in REFUSED)


# Verdicts


def typed(value: Any) -> Any:
    """A value of ours in the oracle's notation, keys in order."""
    if value is None:
        return {"t": "null"}
    if isinstance(value, bool):
        return {"t": "bool", "v": value}
    if isinstance(value, int | float):
        return {"t": "num", "v": to_string(value)}
    if isinstance(value, Timestamp):
        return {"t": "date", "v": value.text}
    if isinstance(value, bytes):
        return {"t": "buffer", "v": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"t": "list", "v": [typed(item) for item in value]}
    if isinstance(value, dict):
        return {"t": "map", "v": sorted((key, typed(item)) for key, item in value.items())}
    return {"t": "str", "v": value}


def in_order(value: Any) -> Any:
    """A value of the oracle with its keys in order; undefined is what js-yaml makes of no document."""
    if value["t"] == "list":
        return {**value, "v": [in_order(item) for item in value["v"]]}
    if value["t"] == "map":
        return {**value, "v": sorted((key, in_order(item)) for key, item in value["v"])}
    return {"t": "null"} if value["t"] == "undefined" else value


def compare(oracle: Oracle, text: str) -> None:
    theirs = oracle.ask({"op": "yaml", "text": text})
    try:
        ours = typed(parse(text).root)
    except YamlError as error:
        if theirs["ok"] and not is_known(text, error):
            pytest.fail(f"only we refuse {text!r}: {error.message}")
        return
    assert theirs["ok"], f"only js-yaml refuses {text!r}: {theirs['message']}"
    assert ours == in_order(theirs["value"]), repr(text)


# Tests


@many
@given(seed=st.integers(0, 2**64 - 1))
def test_generated_texts(oracle: Oracle, seed: int) -> None:
    compare(oracle, Writer(seed).document())


@many
@given(seed=st.integers(0, 2**64 - 1))
def test_generated_texts_with_slips(oracle: Oracle, seed: int) -> None:
    writer = Writer(seed)
    compare(oracle, writer.change(writer.document()))


@many
@given(seed=st.integers(0, 2**64 - 1))
def test_job_files_with_slips(oracle: Oracle, seed: int) -> None:
    writer = Writer(seed)
    compare(oracle, writer.change(writer.piece(JOBS)))


def test_real_job_files(oracle: Oracle, corpus: Path) -> None:
    files = sorted(corpus.glob("*.yaml"))
    assert files
    for file in files:
        compare(oracle, file.read_text())


@pytest.mark.parametrize("scalar", [*SCALARS, *KEYS])
def test_each_scalar_as_value_item_and_key(oracle: Oracle, scalar: str) -> None:
    for text in (scalar, f"k: {scalar}\n", f"- {scalar}\n", f"[{scalar}]", f"{{k: {scalar}}}", f"{scalar}: v\n"):
        compare(oracle, text)


@pytest.mark.parametrize("difference", REFUSED, ids=lambda difference: difference.what)
def test_a_listed_difference_still_is_one(oracle: Oracle, difference: Refused) -> None:
    assert oracle.ask({"op": "yaml", "text": difference.example})["ok"]
    with pytest.raises(YamlError) as caught:
        parse(difference.example)
    assert is_known(difference.example, caught.value)
