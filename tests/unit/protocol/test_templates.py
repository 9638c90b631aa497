"""`<% … %>` becomes what OpenPAI makes of it, and what it would leave unrendered is reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pailot.protocol.js_semantics import WHITE_SPACE, to_string
from pailot.protocol.templates import Renderer, join_commands, lookup, secret_references

SCOPE: dict[str, Any] = {
    "$parameters": {
        "lr": 0.1,
        "one": 1.0,
        "big": 1e21,
        "on": True,
        "off": False,
        "none": None,
        "empty": "",
        "name": "mnist",
        "face": "a😀b",
        "list": [1, [2, [3, None]], "x"],
        "map": {"deep": {"key": "value"}},
        "with-dash": "d",
        "with space": "s",
        "with.dot": "unreachable",
        "zero": 0,
    },
    "$data": {"uri": ["http://a", "http://b"], "name": "set"},
    "$script": {"uri": "git/x"},
}
SECRETS: dict[str, Any] = {"key": "open sesame", "list": ["first"], "nothing": None}


def rendered(text: str) -> tuple[str, list[str]]:
    """The text, and the codes of what was found."""
    renderer = Renderer(SCOPE, SECRETS)
    return renderer.render(text), [issue.code for issue in renderer.issues.values()]


def message(text: str) -> str:
    renderer = Renderer(SCOPE, SECRETS)
    renderer.render(text)
    (issue,) = renderer.issues.values()
    return issue.finding(()).text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no tag", "no tag"),
        ("", ""),
        ("--lr <% $parameters.lr %>", "--lr 0.1"),
        ("<%$parameters.lr%>", "0.1"),
        ("<%\n  $parameters.lr\t%>", "0.1"),
        ("<%\u00a0\ufeff\u2028$parameters.lr\u3000%>", "0.1"),
        ("<% $parameters.lr %><% $parameters.lr %>", "0.10.1"),
        ("<% $parameters.one %>", "1"),
        ("<% $parameters.big %>", "1e+21"),
        ("<% $parameters.on %>,<% $parameters.off %>,<% $parameters.zero %>", "true,false,0"),
        ("[<% $parameters.empty %>]", "[]"),
        ("<% $parameters.list %>", "1,2,3,,x"),
        ("<% $parameters.list[1] %>", "2,3,"),
        ("<% $parameters.list[1][1][0] %> <% $parameters.list.1.1.0 %>", "3 3"),
        ("<% $parameters.list.length %> <% $parameters.name.length %>", "3 5"),
        ("<% $parameters.face.length %>", "4"),
        ("<% $parameters.map %>", "[object Object]"),
        ("<% $parameters.map.deep.key %>", "value"),
        ("<% $parameters.with-dash %> <% $parameters.with space %>", "d s"),
        ("<% $data.uri[0] %> <% $data.uri[1] %> <% $data.name %>", "http://a http://b set"),
        ("<% $data.uri %>", "http://a,http://b"),
        ("{{ $parameters.lr }} ${x} %> <", "{{ $parameters.lr }} ${x} %> <"),
        ("a && b > 'c' \"d\" & <% $parameters.name %>", "a && b > 'c' \"d\" & mnist"),
        ("<% $secrets.key %>", "<% $secrets.key %>"),
        ("<%$secrets.key%>", "<% $secrets.key %>"),
        ("<% $secrets.list[0] %>", "<% $secrets.list.0 %>"),
    ],
)
def test_rendered_as_openpai_does(text: str, expected: str) -> None:
    assert rendered(text) == (expected, [])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<% $parameters.lrr %>", "<% $parameters.lrr %>"),
        ("<%$parameters.list[9]%>", "<% $parameters.list.9 %>"),
        ("<% $parameters.list[00] %>", "<% $parameters.list.00 %>"),
        ("<% $parameters.list[-1] %>", "<% $parameters.list[-1] %>"),
        ("<% $parameters.list[٣] %>", "<% $parameters.list[٣] %>"),
        ("<%   $parameters.none   %>", "<% $parameters.none %>"),
        ("<% $parameters.none.x %>", "<% $parameters.none.x %>"),
        ("<% $parameters.lr.x %>", "<% $parameters.lr.x %>"),
        ("<% $parameters.with.dot %>", "<% $parameters.with.dot %>"),
        ("<% $parameters. %>", "<% $parameters. %>"),
        ("<% lr %>", "<% lr %>"),
        ("<% $output.uri %>", "<% $output.uri %>"),
        ("<% $secrets.kee %>", "<% $secrets.kee %>"),
        ("<% $secrets.nothing %>", "<% $secrets.nothing %>"),
        ("<% $secrets %>", "<% $secrets %>"),
        ("<% $parameters.toString %>", "<% $parameters.toString %>"),
        ("<%\x85$parameters.lr %>", "<% \x85$parameters.lr %>"),
    ],
)
def test_what_cannot_be_resolved_is_reported_and_kept_in_openpais_spelling(text: str, kept: str) -> None:
    assert rendered(text) == (kept, ["template-unresolved"])


@pytest.mark.parametrize(
    "text",
    [
        "<%",
        "a <% $parameters.lr",
        "<% %>",
        "<%%>",
        "<%# $parameters.on %>x<%/ $parameters.on %>",
        "<%^ a %>",
        "<%> a %>",
        "<%& $parameters.lr %>",
        "<%{ $parameters.lr }%>",
        "<%! remark %>",
        "<%= {{ }} =%>",
        "<% a <% $parameters.lr %>",
    ],
)
def test_malformed_tags_are_reported_and_kept(text: str) -> None:
    out, codes = rendered(text)
    assert codes
    assert "template-malformed" in codes
    assert out.count("<%") >= codes.count("template-malformed")


@pytest.mark.parametrize(
    ("text", "expected", "code"),
    [
        ("<% $script.uri[0] %>", "g", "template-string-index"),
        ("<% $parameters.name.4 %>", "t", "template-string-index"),
        ("<% $parameters.face[3] %>", "b", "template-string-index"),
        ("<% $parameters.face[1] %>", "\ufffd", "template-string-index"),
        ("<% $parameters.name[5] %>", "<% $parameters.name.5 %>", "template-unresolved"),
    ],
)
def test_an_index_into_a_text_is_doubtful(text: str, expected: str, code: str) -> None:
    assert rendered(text) == (expected, [code])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<% $parameters.nmae %>", "did you mean 'name'?"),
        ("<% $paramters.name %>", "did you mean '$parameters'?"),
        ("<% lr %>", "there is no 'lr'"),
        ("<% $secrets.keys %>", "did you mean 'key'?"),
        ("<% $parameters.list[3] %>", "a list of 3; indexes count from 0"),
        ("<% $parameters.lr.x %>", "'$parameters.lr' has no parts"),
        ("<% $parameters.none %>", "is empty (null)"),
        ("<% $script.uri[0] %>", "leave out the [0]"),
        ("<% open", "close the tag"),
        ("<%# x %>", "is no reference"),
        ("<% %>", "an empty tag"),
    ],
)
def test_messages_say_what_to_do(text: str, words: str) -> None:
    assert words in message(text)


def test_a_tag_is_reported_once_even_if_it_stands_twice() -> None:
    assert rendered("<% x %> <% x %> <% $parameters.lr %>")[1] == ["template-unresolved"]


def test_the_reported_tag_is_the_one_in_the_text() -> None:
    renderer = Renderer(SCOPE, SECRETS)
    renderer.render("<%  $parameters.x[0]%>")
    assert [issue.tag for issue in renderer.issues.values()] == ["<%  $parameters.x[0]%>"]


def test_values_of_secrets_never_appear() -> None:
    out, _ = rendered("<% $secrets.key %> <% $secrets.list %> <% $secrets.key.length %> <% $secrets %> <% $secrets.key[0] %>")
    assert "open sesame" not in out
    assert secret_references(out) == [
        "<% $secrets.key %>",
        "<% $secrets.list %>",
        "<% $secrets.key.length %>",
        "<% $secrets.key.0 %>",
    ]


def test_references_to_secrets_are_found_whatever_their_name() -> None:
    assert secret_references("a <% $secrets.100% %> <% x %> <% $secrets.a b.c %>") == [
        "<% $secrets.100% %>",
        "<% $secrets.a b.c %>",
    ]


def test_lookup_tells_why_there_is_nothing() -> None:
    assert lookup(SCOPE, ["$data", "uri", "1"], "") == ("http://b", "", None)
    value, words, near = lookup(SCOPE, ["$data", "url"], "")
    assert (value, words, near and near.word) == (None, "is not known: '$data' has no 'url'", "url")


def test_commands_are_trimmed_and_joined_by_line() -> None:
    assert join_commands(["  a \n", "b\n c", "\ufeff\u00a0d\u2029", ""]) == "a\nb\n c\nd\n"


# A second renderer, written another way: every name that exists is spelled out beforehand.


DEPTH = 5


def names(value: Any, path: str, depth: int = 1) -> dict[str, str]:
    """All dotted names below a value, with their text."""
    table = {} if value is None or not path else {path: to_string(value)}
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [(key, item) for key, item in value.items() if "." not in key]
    elif isinstance(value, str | list):
        parts = [*((str(position), item) for position, item in enumerate(value)), ("length", len(value))]
    if depth <= DEPTH:
        for name, item in parts:
            table |= names(item, f"{path}.{name}" if path else name, depth + 1)
    return table


def model(text: str, scope: dict[str, Any]) -> tuple[str, int]:
    """The rendered text and how many different tags have no value, found character by character."""
    table = names(scope, "")
    out, tag, at = "", "", 0
    missing: set[str] = set()
    inside = False
    while at < len(text):
        two = text[at : at + 2]
        if not inside and two == "<%":
            inside, tag, at = True, "", at + 2
        elif inside and two == "%>":
            name = canonical(tag)
            missing |= set() if name in table else {tag}
            out += table.get(name, f"<% {name} %>")
            inside, at = False, at + 2
        else:
            if inside:
                tag += text[at]
            else:
                out += text[at]
            at += 1
    return out, len(missing)


def canonical(tag: str) -> str:
    while tag and tag[0] in WHITE_SPACE:
        tag = tag[1:]
    while tag and tag[-1] in WHITE_SPACE:
        tag = tag[:-1]
    out, digits = "", None
    for character in tag:
        if digits is None:
            digits = "" if character == "[" else None
            out += "" if character == "[" else character
        elif character in "0123456789":
            digits += character
        elif character == "]" and digits:
            out, digits = f"{out}.{digits}", None
        else:
            out += f"[{digits}"
            digits = "" if character == "[" else None
            out += "" if character == "[" else character
    return out if digits is None else f"{out}[{digits}"


keys = st.sampled_from(["a", "b", "a-b", "a b", "0", "1", "length", "é", "x.y", "[0]"])
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text("ab ", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
scopes = st.fixed_dictionaries({"$parameters": st.dictionaries(keys, values, max_size=5)}, optional={"$data": values})
steps = keys.map(lambda key: "." + key) | st.sampled_from(["[0]", "[1]", "[2]", "[01]", "[", "]", "[[0]", "[x]"])
references = st.tuples(st.sampled_from(["$parameters", "$data", "x"]), st.lists(steps, max_size=DEPTH - 1)).map(
    lambda found: found[0] + "".join(found[1])
)
spaces = st.text(" \n\t\u00a0\ufeff\x85", max_size=2)
tags = st.tuples(spaces, references, spaces).map(lambda found: "<%" + "".join(found) + "%>")
templates = st.lists(tags | st.text("ab %>{}\n<", max_size=4).filter(lambda text: "<%" not in text + "%")).map("".join)


@given(templates, scopes)
@example("<%$parameters.a[0][1]%>", {"$parameters": {"a": [["x", "y"]]}})
@example("<% $parameters.a[[0] %>", {"$parameters": {"a": ["x"]}})
def test_a_second_renderer_agrees(text: str, scope: dict[str, Any]) -> None:
    renderer = Renderer(scope, {})
    out = renderer.render(text)
    assert (out, [issue.code for issue in renderer.issues.values()].count("template-unresolved")) == model(text, scope)
