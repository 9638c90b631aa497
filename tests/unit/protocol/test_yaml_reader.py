"""Every form of YAML we read, where its parts stand, and one clean error for everything else."""

from __future__ import annotations

import json
import re
import string
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pailot.protocol.yaml import LIMITS, Document, List, Map, YamlError, flow, parse
from pailot.protocol.yaml.fast_path import NotPlainLines, read_lines
from pailot.protocol.yaml.parser import Parser

from ...support.hostile_texts import HOSTILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pailot.protocol.yaml.document import Step


def refusal(text: str) -> YamlError:
    with pytest.raises(YamlError) as caught:
        parse(text)
    return caught.value


def outcome(text: str) -> Document | YamlError:
    try:
        return parse(text)
    except YamlError as error:
        found = error
    assert 0 <= found.offset <= len(text)
    return found


def place(text: str, *path: Step, key: bool = False) -> tuple[int, int]:
    document = parse(text)
    return document.line_and_column(document.offset(path, key=key))


# Structure


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("\n\n", None),
        ("# only\n  # comments", None),
        ("---\n", None),
        ("text", "text"),
        ("a: 1\nb: x\n", {"a": 1, "b": "x"}),
        ("a:\n  b:\n    c: 1\n  d: 2\n", {"a": {"b": {"c": 1}, "d": 2}}),
        ("  a: 1\n  b: 2\n", {"a": 1, "b": 2}),
        ("a:\nb:\n", {"a": None, "b": None}),
        ("- a\n- b\n", ["a", "b"]),
        ("a:\n- 1\n- 2\nb: 3\n", {"a": [1, 2], "b": 3}),
        ("a:\n  - 1\n  - b: 2\n    c: 3\n  -\n    d: 4\n", {"a": [1, {"b": 2, "c": 3}, {"d": 4}]}),
        ("- - 1\n  - 2\n- - 3\n", [[1, 2], [3]]),
        ("-\n- a\n-\n", [None, "a", None]),
        ("- -\n    ~\n- a\n", [[None], "a"]),
        ("a: b:c\n", {"a": "b:c"}),
        ("a b: c d\n", {"a b": "c d"}),
        ("key : v\n", {"key": "v"}),
        ("1: a\ntrue: b\n~: c\n1.50: d\n", {"1": "a", "true": "b", "null": "c", "1.5": "d"}),
        ("url: http://x/y#z\n", {"url": "http://x/y#z"}),
        ("a: -b\nc: ?d\ne: :f\n", {"a": "-b", "c": "?d", "e": ":f"}),
        ("%YAML 1.2\n---\na: 1\n...\n# end\n", {"a": 1}),
        ("--- a\n", "a"),
        ("a: b\n c\n", {"a": "b c"}),
        ("a:\n \t'b'\n", {"a": "b"}),
    ],
)
def test_block_style(text: str, value: Any) -> None:
    assert parse(text).root == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[]", []),
        ("{}", {}),
        ("[a, 1, [b], {c: d}]", ["a", 1, ["b"], {"c": "d"}]),
        ("{a: 1, 'b': \"c\", d: [e], f, g: }", {"a": 1, "b": "c", "d": ["e"], "f": None, "g": None}),
        ('{"a":1,"b":[]}', {"a": 1, "b": []}),
        ("[a, b,]", ["a", "b"]),
        ("[a: 1, 'b': 2, c d]", [{"a": 1}, {"b": 2}, "c d"]),
        ("[a,\n # why\n b # so\n , c]", ["a", "b", "c"]),
        ("[a\n  b,\n\n c]", ["a b", "c"]),
        ("{? a : b, ? c}", {"a": "b", "c": None}),
        ("{? a\n : b}", {"a": "b"}),
        ("{: a}", {"null": "a"}),
        ("{!!str <<: {a: 1}}", {"<<": {"a": 1}}),
        ("[a, --- ]", ["a", "---"]),
        ("{:a: b, -c: ?d}", {":a": "b", "-c": "?d"}),
        ("{{a: b}: c, [d, e]: f}", {"[object Object]": "c", "d,e": "f"}),
        ("a: [b\n  - c]", {"a": ["b - c"]}),
        ("{a:b, http://x: y}", {"a:b": None, "http://x": "y"}),
        ("a: [b,\n c]\nd: {\n }\n", {"a": ["b", "c"], "d": {}}),
    ],
)
def test_flow_style(text: str, value: Any) -> None:
    assert parse(text).root == value


@pytest.mark.parametrize(
    ("style", "value"),
    [
        ("'it''s'", "it's"),
        ("'a\\n'", "a\\n"),
        ('"a\\tb\\x41\\u00e9\\U0001F600\\"\\\\\\/"', 'a\tbAé😀"\\/'),
        ('"\\ud83d\\ude00\\U0010ffff"', "😀\U0010ffff"),
        ('"\\0\\a\\b\\e\\f\\v\\N\\_\\L\\P\\r\\n"', "\0\a\b\x1b\f\v\x85\xa0\u2028\u2029\r\n"),
        ("'a\n  b\n\n  c'", "a b\nc"),
        ('"a\n  b\n\n\n  c"', "a b\n\nc"),
        ('"a\\\n   b"', "ab"),
        ('"a  \n  b"', "a   b"),
        ("a\n  b\n\n  c", "a b\nc"),
        ("a # c", "a"),
        ("a#c", "a#c"),
        ("'a' # c", "a"),
        ("'#'", "#"),
    ],
)
def test_quoted_and_plain_texts(style: str, value: str) -> None:
    assert parse(f"k: {style}\n").root == {"k": value}
    assert parse(f"- {style}\n").root == [value]


@pytest.mark.parametrize(
    ("style", "value"),
    [
        ("|\n  a\n   b\n\n  c\n", "a\n b\n\nc\n"),
        ("|-\n  a\n\n", "a"),
        ("|+\n  a\n\n", "a\n\n"),
        ("|\n  a\n\n\n", "a\n"),
        ("|1\n  a\n", " a\n"),
        ("|1-\n  a\n", " a"),
        ("|-1\n  a\n", " a"),
        ("| # why\n  # kept\n", "# kept\n"),
        ("|\n\n  a\n", "\na\n"),
        ("|\n", ""),
        ("|+\n\n\n", "\n\n"),
        (">\n  a\n  b\n\n  c\n", "a b\nc\n"),
        (">-\n  a\n  b\n", "a b"),
        (">+\n  a\n\n", "a\n\n"),
        (">\n  a\n   b\n  c\n", "a\n b\nc\n"),
        (">\n  a\n\n   b\n\n\n  c\n", "a\n\n b\n\n\nc\n"),
        (">\n\n  a\n", "\na\n"),
        (">\n  a: b\n  - c\n", "a: b - c\n"),
    ],
)
def test_block_texts(style: str, value: str) -> None:
    assert parse(f"k: {style}").root == {"k": value}
    assert parse(f"- {style}").root == [value]
    assert parse(f"k: {style}z: 1\n").root == {"k": value, "z": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x 1\nb: *x\n", {"a": 1, "b": 1}),
        ("a: &x\n  k: 1\nb: *x\n", {"a": {"k": 1}, "b": {"k": 1}}),
        ("- &x [a]\n- *x\n- [*x, *x]\n", [["a"], ["a"], [["a"], ["a"]]]),
        ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
        ("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3\n", {"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}}),
        ("a: &x {k: 1}\nb:\n  k: 2\n  <<: *x\n", {"a": {"k": 1}, "b": {"k": 2}}),
        ("a: &x {k: 1}\nb: &y {k: 2, l: 3}\nc: {<<: [*x, *y]}\n", {"a": {"k": 1}, "b": {"k": 2, "l": 3}, "c": {"k": 1, "l": 3}}),
        ("a: &x {b: &x 1}\nc: *x\n", {"a": {"b": 1}, "c": 1}),
        ("a: '<<'\nb: <<\n'<<': 1\n", {"a": "<<", "b": "<<", "<<": 1}),
        ("? a\n: 1\n? b\nc: 2\n", {"a": 1, "b": None, "c": 2}),
        ("? a\n:b: 1\n", {"a": None, ":b": 1}),
        ("? |\n  a\n: - 1\n  - 2\n", {"a\n": [1, 2]}),
    ],
)
def test_anchors_merges_and_explicit_keys(text: str, value: Any) -> None:
    assert parse(text).root == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!str 1", "1"),
        ("!!str", ""),
        ("! 1", "1"),
        ('!!int "7"', 7),
        ("!!float 7", 7),
        ("!!bool 'true'", True),
        ("!!null ~", None),
        ("!!binary aGk=", b"hi"),
        ("!!set {a, b}", {"a": None, "b": None}),
        ("!!omap [a: 1, b: 2]", [{"a": 1}, {"b": 2}]),
        ("!!pairs [a: 1, a: 2]", [["a", 1], ["a", 2]]),
        ("!!map {}", {}),
        ("!!seq []", []),
        ("!!set", {}),
        ("!!seq", []),
        ("a: !!map\n  b: 1\n", {"a": {"b": 1}}),
        ("a: !!str &x 1\nb: *x\n", {"a": "1", "b": "1"}),
    ],
)
def test_tags(text: str, value: Any) -> None:
    assert parse(text).root == value


@pytest.mark.parametrize(
    "text",
    ["a: 1\r\nb:\r\n  - |\r\n    x\r\n    y\r\n", "a: 1\rb:\r  - |\r    x\r    y\r", "\ufeffa: 1\nb:\n  - |\n    x\n    y\n"],
)
def test_line_ends_and_byte_order_mark(text: str) -> None:
    assert parse(text).root == {"a": 1, "b": ["x\ny\n"]}


# Places


@pytest.mark.parametrize(
    ("text", "path", "key_at", "value_at"),
    [
        ("a: 1", ("a",), (1, 1), (1, 4)),
        ("# c\n\na:   x\n", ("a",), (3, 1), (3, 6)),
        ("a:\n  b:\n    c: x\n", ("a", "b", "c"), (3, 5), (3, 8)),
        ("a:\n  b:\n    c: x\n", ("a", "b"), (2, 3), (3, 5)),
        ("a:\n  # c\n  b: 1\n", ("a",), (1, 1), (3, 3)),
        ("key : v", ("key",), (1, 1), (1, 7)),
        ("'k: k': v", ("k: k",), (1, 1), (1, 9)),
        ('"k\\"": v', ('k"',), (1, 1), (1, 8)),
        ("a:b:c: v", ("a:b:c",), (1, 1), (1, 8)),
        ("a: {b: {c: x}}", ("a", "b", "c"), (1, 9), (1, 12)),
        ('{"a":1}', ("a",), (1, 2), (1, 6)),
        ("{a: [x, {b: y}]}", ("a", 1, "b"), (1, 10), (1, 13)),
        ("- a\n- b: 1\n  c: 2\n", (1, "c"), (3, 3), (3, 6)),
        ("a:\n- x\n-   y\n", ("a", 1), (3, 5), (3, 5)),
        ("a:\n-\n  - x\n", ("a", 0, 0), (3, 5), (3, 5)),
        ("a: [x,\n    y]", ("a", 1), (2, 5), (2, 5)),
        ("a: |\n  x\nb: y", ("b",), (3, 1), (3, 4)),
        ("? a\n: b\n", ("a",), (1, 1), (2, 3)),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", ("c", "b"), (1, 8), (1, 11)),
        ("a: null\nb: ~", ("a",), (1, 1), (1, 4)),
        ("é: ü\nß: x", ("ß",), (2, 1), (2, 4)),
        ("a: 1\r\nb: 2\r\n", ("b",), (2, 1), (2, 4)),
        # An empty value has the place of its key or dash, something missing that of its parent.
        ("a:\nb: 1\n", ("a",), (1, 1), (1, 1)),
        ("{a, b: c}", ("a",), (1, 2), (1, 2)),
        ("x:\n  -\n  - a\n", ("x", 0), (2, 3), (2, 3)),
        ("a:\n  b: 1\n", ("a", "zzz"), (2, 3), (2, 3)),
        ("a: [x]\n", ("a", 5), (1, 4), (1, 4)),
        ("a: 1\n", (), (1, 1), (1, 1)),
        ("\n  a: 1\n", (), (2, 3), (2, 3)),
    ],
)
def test_places_of_keys_and_values(text: str, path: tuple[Step, ...], key_at: tuple[int, int], value_at: tuple[int, int]) -> None:
    assert place(text, *path, key=True) == key_at
    assert place(text, *path) == value_at


def test_lines_are_counted_from_1() -> None:
    document = parse("a: 1\nb: 2\n")
    assert [document.line(number) for number in (1, 2, 9)] == ["a: 1", "b: 2", ""]
    assert document.find("2", 0) == 8
    assert document.find("nowhere", 3) == 3


# Refusals


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("a: 1\nb: 2\na: 3\n", "yaml-duplicate-key", (3, 1)),
        ("{a: 1, 'a': 2}", "yaml-duplicate-key", (1, 8)),
        ("1: a\n'1': b\n", "yaml-duplicate-key", (2, 1)),
        ("a: 1\n---\nb: 2\n", "yaml-documents", (2, 1)),
        ("a: 1\n...\nb: 2\n", "yaml-documents", (3, 1)),
        ("a: !!js/function x\n", "yaml-tag", (1, 4)),
        ("a: !own x\n", "yaml-tag", (1, 4)),
        ("a: !!int x\n", "yaml-tag", (1, 4)),
        ("a: !!int 3.0\n", "yaml-tag", (1, 4)),
        ("a: !!float 0x1F\n", "yaml-tag", (1, 4)),
        ("a: !!null ''\n", "yaml-tag", (1, 4)),
        ("a: !!binary a\n", "yaml-tag", (1, 4)),
        ("a: !!omap [a: 1, a: 2]\n", "yaml-tag", (1, 4)),
        ("a: !!set {b: 1}\n", "yaml-tag", (1, 4)),
        ("a: *x\n", "yaml-alias", (1, 4)),
        ("a: &x [*x]\n", "yaml-alias", (1, 8)),
        ("a: &x\nb: *x\n", "yaml-alias", (2, 4)),
        ("a: &x b\nc: !!str *x\n", "yaml-alias", (2, 10)),
        ("<<: 1\n", "yaml-alias", (1, 1)),
        ("a:\n\tb: 1\n", "yaml-syntax", (2, 2)),
        ("a: 1\n\tb: 2\n", "yaml-syntax", (2, 2)),
        ("a: 1\n  b: 2\n", "yaml-syntax", (2, 4)),
        ("a:\n    b: 1\n  c: 2\n", "yaml-syntax", (3, 3)),
        ("a: b: c\n", "yaml-syntax", (1, 5)),
        ("a: - b\n", "yaml-syntax", (1, 4)),
        ("a: 1\n- b\n", "yaml-syntax", (2, 1)),
        ("a: 1\nb\n", "yaml-syntax", (2, 1)),
        ("a: 'b\nc: d\n", "yaml-syntax", (1, 4)),
        ('a: "\\q"\n', "yaml-syntax", (1, 4)),
        ("a: @b\n", "yaml-syntax", (1, 4)),
        ("a: [b\n", "yaml-syntax", (1, 5)),
        ("a: [b c: d e]]\n", "yaml-syntax", (1, 14)),
        ("a: [b} \n", "yaml-syntax", (1, 6)),
        ("a: {b: c d: e}\n", "yaml-syntax", (1, 11)),
        ("{a\n: b}\n", "yaml-syntax", (2, 1)),
        ("[a\n: b]\n", "yaml-syntax", (2, 1)),
        ("a: [b\nc]\n", "yaml-syntax", (2, 1)),
        ("a: [b\n---\nc]\n", "yaml-syntax", (2, 1)),
        ("a: [b\n\n", "yaml-syntax", (1, 5)),
        ("a: 'b\n---\nc'\n", "yaml-syntax", (1, 4)),
        ("[&x\n  a]\n", "yaml-syntax", (1, 2)),
        ("a: !!str\n  1\n", "yaml-syntax", (1, 3)),
        ("a: &x b: c\n", "yaml-syntax", (1, 3)),
        ("!!str\n...\n", "yaml-syntax", (1, 1)),
        ("[!!seq[a]]\n", "yaml-tag", (1, 2)),
        ("? [[a]]\n", "yaml-syntax", (1, 1)),
        ("[a,,b]\n", "yaml-syntax", (1, 4)),
        ("|\na\n", "yaml-syntax", (1, 1)),
        ("a: |\n   \n  b\n", "yaml-syntax", (1, 4)),
        ("  a\nb\n", "yaml-syntax", (2, 1)),
        ("%YAML 1.2\na: 1\n", "yaml-syntax", (2, 1)),
        ('a: "\\U00110000"\n', "yaml-syntax", (1, 4)),
        ("a: |x\n  b\n", "yaml-syntax", (1, 4)),
        ("a: |0\n  b\n", "yaml-syntax", (1, 4)),
        ("a: & b\n", "yaml-syntax", (1, 4)),
        ("a: &x &y b\n", "yaml-syntax", (1, 7)),
        ("%TAG ! x\n---\na\n", "yaml-syntax", (1, 1)),
        ("__proto__: 1\n", "yaml-syntax", (1, 1)),
        ("- -\n- a\n", "yaml-syntax", (1, 3)),
        ("---a\n", "yaml-syntax", (1, 1)),
        ("a: 1\nb: '\x01'\n", "yaml-encoding", (2, 5)),
        ("a: 1\r\nb: 2\r\nc: \x7f\r\n", "yaml-encoding", (3, 4)),
        ("a: \ud800\n", "yaml-encoding", (1, 4)),
        ('a: "\\ud800"\n', "yaml-encoding", (1, 4)),
        ("a: \0\n", "yaml-encoding", (1, 4)),
        ("\ufeffa: 1\n@b: 2\n", "yaml-syntax", (2, 1)),
        ("\ufeff\na: \x01\n", "yaml-encoding", (2, 4)),
    ],
)
def test_refused_with_code_and_place(text: str, code: str, at: tuple[int, int]) -> None:
    error = refusal(text)
    assert error.code == code
    normal = text.replace("\r\n", "\n").removeprefix("\ufeff")
    assert Document(normal, None, ()).line_and_column(error.offset) == at
    assert str(error) == error.message != ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [<% $parameters.x[0] %>]", "a template must be quoted"),
        ("a: 1\na: 2\n", "on line 1"),
        ("a:\n\tb: 1\n", "use spaces"),
        ("a: 1\nb:2\n", "space is missing after the colon"),
        ("a: %x\n", "put it in quotes"),
        ("a: x: y\n", "second ': ' on this line"),
        ("a: x\n  b: y\n", "check the indentation"),
    ],
)
def test_refusals_say_what_to_do(text: str, words: str) -> None:
    assert words in refusal(text).message


# Hostile input


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_gives_a_value_or_one_error(name: str) -> None:
    text, code = HOSTILE[name]
    found = outcome(text)
    if isinstance(found, Document) and isinstance(found.root, Map):
        for key in found.root:
            found.offset((key,))
    assert (found.code if isinstance(found, YamlError) else None) == code


def test_the_limits_themselves_are_allowed() -> None:
    depth, items = LIMITS.DEPTH, LIMITS.NODES - 1
    assert parse("[" * depth + "]" * depth).root
    assert refusal("[" * (depth + 1) + "]" * (depth + 1)).code == "yaml-limit"
    assert len(parse("[" + "a," * items + "]").root) == items
    assert refusal("[" + "a," * (items + 1) + "]").code == "yaml-limit"


TOKENS = [
    *"a|b|key|1|010|1e3|true|null|~|: |:|- |-|? |?| |  |\n|\n  |\n    |\n- |\nk: |\t|\r\n|#|# c|'|\"|[|]|{|}|,|, ".split("|"),
    *["&x ", "*x", "!!str ", "! ", "|", "|\n", ">-\n", "<<", "<<: *x", "---", "...", "%YAML 1.2\n", "<% x %>", "\\", "\\n"],
    *["é", "\ufeff", "\x01", "@", "2019-01-01"],
]
soup = st.lists(st.sampled_from(TOKENS), max_size=40).map("".join)


@given(st.text() | st.text(alphabet=string.printable) | soup)
@example("9999-99-99")
def test_any_text_is_a_document_or_a_refusal(text: str) -> None:
    outcome(text)


# The quick reader


PLAIN = [
    "a",
    "a b",
    "x/y",
    "$HOME",
    "<% $p.x %>",
    "a:b",
    "1",
    "0",
    "010",
    "1e3",
    "-1",
    "12:30",
    "2019-01-01",
    "true",
    "null",
    "0x1F",
]
INLINE = ["'q'", '"q"', "'it''s'", '"a\\n"', "[]", "{}", "[a, 010]", "{a: [b]}", "[a,\n      b]", '"a\n      b"', "'' ", "~"]
BLOCKS = ["|\n{}x\n{} y", ">-\n{}x\n\n{}y", "|+\n{}x\n", "|-\n{}# x"]
ODD = ["a # c", "a: b", "'a' b", "[a", "@a", "&x a", "*x", "!!str a", "- a", "? a", "a\n{}b", "é", "a:", "a\tb", "'a", "1 # c"]


@st.composite
def line_document(draw: st.DrawFn, indent: int = 0, depth: int = 0) -> str:
    """Lines as in a job file, with now and then one that only the general parser reads."""
    is_list = depth > 0 and draw(st.booleans())
    lines = []
    for number in range(draw(st.integers(1, 4))):
        head = " " * indent + ("- " if is_list else f"{draw(st.sampled_from('abc'))}{number}:")
        kind = draw(st.integers(0, 19))
        if kind < 5 and depth < 4:
            below = draw(line_document(indent + 2, depth + 1))
            lines.append(head + below.lstrip() if is_list else f"{head}\n{below}")
            continue
        values = ODD if kind == 19 else BLOCKS if kind > 16 else INLINE if kind > 12 else PLAIN
        gap = "" if is_list else draw(st.sampled_from([" ", " ", "  "]))
        lines.append(head + gap + draw(st.sampled_from(values)).replace("{}", " " * (indent + 4)))
        if kind == 5:
            lines.append(draw(st.sampled_from(["", "  ", "# c", "      # c"])))
    return "\n".join(lines)


def everything(node: Any) -> Any:
    """A value with all it remembers, and the types that == overlooks."""
    if isinstance(node, Map):
        return "map", node.at, node.marks, [(key, everything(item)) for key, item in node.items()]
    if isinstance(node, List):
        return "list", node.at, node.marks, [everything(item) for item in node]
    return repr(node)


def agree(text: str) -> bool:
    """Whether the quick reader took the text; if so, the general parser must see the same."""
    text += "\n"
    quick, general = Parser(text), Parser(text)
    root = refused = None
    try:
        root = read_lines(text, quick)
    except NotPlainLines:
        return False
    except YamlError as error:
        refused = error
    if refused:
        with pytest.raises(YamlError) as caught:
            general.document()
        assert (caught.value.message, caught.value.offset) == (refused.message, refused.offset)
        return False
    assert everything(general.document()) == everything(root)
    assert general.ambiguous == quick.ambiguous
    return True


@given(
    line_document() | st.lists(st.tuples(st.integers(0, 3), soup)).map(lambda lines: "\n".join("  " * n + s for n, s in lines))
)
@example("a: 1\n__proto__: 2")
@example("a:\n- b\n- c: 1\n  d:\n  - e\nf: g")
@example("# c\na: 1")
@example("a:\n- \n- b")
@example("a: 'b' c")
@example('a: "b" c')
def test_the_quick_reader_and_the_general_parser_agree(text: str) -> None:
    agree(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n  - x\n  - c: d\n    e: [1, 010]\n  # why\nf: |\n  g\nh: 'i'\nj:\n- k\nl:",
        "a:\n  b:\n    - c: 'x'\n      d:\n        - e\n  f: 2019-01-01",
        "a: >-\n  x\n\n  y\nb: {c: d,\n    e: f}\nc: $x",
    ],
)
def test_job_files_need_only_the_quick_reader(text: str) -> None:
    assert agree(text)


# Another reader


texts = st.text(alphabet=string.ascii_letters + string.digits + " :#-'\"[]{},&*!|>%@`?\\é<=~._/$", max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    texts | st.booleans() | st.none(),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(texts, inner, min_size=1, max_size=3),
    max_leaves=10,
)


@st.composite
def written(draw: st.DrawFn) -> str:
    """A document that means the same to all readers: every text quoted, no numbers, styles mixed."""

    def scalar(value: Any) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        return json.dumps(value, ensure_ascii=False) if draw(st.booleans()) else "'" + value.replace("'", "''") + "'"

    def flow(value: Any) -> str:
        comma = draw(st.sampled_from([", ", ",", " ,\n                "]))
        if isinstance(value, dict):
            return "{" + comma.join(f"{scalar(key)}: {flow(item)}" for key, item in value.items()) + "}"
        return "[" + comma.join(map(flow, value)) + "]" if isinstance(value, list) else scalar(value)

    def block(value: Any, indent: int) -> list[str]:
        """The lines of a collection, or one line; the first is not indented."""
        if not isinstance(value, dict | list) or draw(st.integers(0, 3)) == 0:
            return [flow(value) + draw(st.sampled_from(["", "", " # c"]))]
        lines: list[str] = []
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            width = draw(st.sampled_from([2, 4])) if isinstance(value, dict) else 2
            first, *others = block(item, indent + width)
            if isinstance(value, list):
                lines += [f"{' ' * indent}- {first}", *others]
            elif others or (isinstance(item, dict | list) and first[0] not in "[{"):
                lines += [f"{' ' * indent}{scalar(key)}:", f"{' ' * (indent + width)}{first}", *others]
            else:
                lines.append(f"{' ' * indent}{scalar(key)}{draw(st.sampled_from([': ', ':   ', ' : ']))}{first}")
        return [lines[0].lstrip(), *lines[1:]]

    return "\n".join(block(draw(values), 0)) + "\n"


@given(written())
def test_pyyaml_reads_the_same_value(text: str) -> None:
    assert parse(text).root == yaml.safe_load(text)


@given(written())
def test_pyyaml_sees_the_same_places(text: str) -> None:
    document = parse(text)
    for path, key_mark, mark in composed(yaml.compose(text, Loader=yaml.SafeLoader), ()):
        assert document.line_and_column(document.offset(path)) == mark, path
        if key_mark:
            assert document.line_and_column(document.offset(path, key=True)) == key_mark, path


Place = tuple[int, int]


def composed(
    node: Any, path: tuple[Step, ...], key: Place | None = None
) -> Iterator[tuple[tuple[Step, ...], Place | None, Place]]:
    """Path, place of the key and place of the value, of all values in PyYAML's tree."""

    def mark(of: Any) -> Place:
        return of.start_mark.line + 1, of.start_mark.column + 1

    if path:
        yield path, key, mark(node)
    if isinstance(node, yaml.MappingNode):
        for name, item in node.value:
            yield from composed(item, (*path, name.value), mark(name))
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from composed(item, (*path, position))


_PARTS = ("a: 1", "b: 010", "name: x", "true: no", "__proto__: 1", "a: 1:30", "<<: x", "k: a b", "u: r/i:t", "u: r:5/i:t", "- x")
_ENDS = ("}", ", }", " }", ",}", "\n}", "", ": 1}", "# c\n}")


@given(st.lists(st.sampled_from(_PARTS), max_size=4), st.sampled_from((", ", ",", ",  ", ",\n ")), st.sampled_from(_ENDS))
def test_pairs_read_at_once_and_pairs_read_by_parts_agree(pairs: list[str], between: str, end: str) -> None:
    text = "x: {" + between.join(pairs) + end + "\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "_PLAIN_PAIR", re.compile("(?!)"))
        by_parts = outcome(text)
    assert _all_of(outcome(text)) == _all_of(by_parts)


def _all_of(found: Document | YamlError) -> object:
    if isinstance(found, YamlError):
        return found.code, found.message, found.offset
    inner = found.root["x"]
    return found.root, getattr(inner, "marks", None), found.ambiguous
