"""OpenPAI's renderer and ours side by side: whatever we do not report as malformed comes out the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pailot.protocol.js_semantics import trim
from pailot.protocol.templates import Renderer

from ..support.oracle import Oracle

pytestmark = pytest.mark.node
many = settings(max_examples=3 * settings().max_examples)

# Not among the keys and names: those that every JavaScript object, text or list has by itself ('constructor', 'concat'),
# and '.' alone, which is the whole scope. OpenPAI renders them as '[object Object]' or worse; we report them as unknown.
KEYS = ["a", "b", "a-b", "a b", "A", "0", "1", "length", "é", "x.y", "[0]", "$parameters", "null", "#"]
texts = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=4)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=2),
    max_leaves=5,
)
scopes = st.fixed_dictionaries(
    {},
    optional={name: st.dictionaries(st.sampled_from(KEYS), values, max_size=3) for name in ("$parameters", "$data", "$script")},
)
WHITE = ["", " ", "  ", "\n", "\t", "\u00a0", "\ufeff", "\u2028", "\x85", "\x1c", "\u180e", "\u3000"]
steps = st.sampled_from(KEYS).map(lambda key: "." + key) | st.sampled_from(
    ["[0]", "[1]", "[01]", "[٣]", "[", "]", "[x]", "..", "[2][0]"]
)
references = st.tuples(st.sampled_from(["$parameters", "$data", "$script", "$output", "x"]), st.lists(steps, max_size=4))
tags = st.tuples(st.sampled_from(WHITE), references, st.sampled_from(WHITE)).map(
    lambda found: f"<%{found[0]}{found[1][0]}{''.join(found[1][1])}{found[2]}%>"
)
pieces = st.text(max_size=5) | st.sampled_from(["echo ", " && ", "\n", "{{ a }}", "%>", "< %", "&'\"", "a <b> c", "$x ${y}"])
SIGNS = [*"<% %> $parameters .a a [0] # ^ / > { } & = ! % < x".split(), "<% ", " %>", " ", "\n"]


def compare(oracle: Oracle, text: str, scope: dict[str, Any]) -> None:
    renderer = Renderer(scope, {})
    ours = renderer.render(text)
    theirs = oracle.ask({"op": "render", "template": text, "context": scope})
    if any(issue.code == "template-malformed" for issue in renderer.issues.values()):
        return
    assert theirs["ok"], f"only mustache refuses {text!r}: {theirs['message']}"
    assert trim(ours) == theirs["text"].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@many
@given(st.lists(tags | pieces, max_size=6).map("".join), scopes)
@example("<% $parameters.a[0] %>", {"$parameters": {"a": "😀"}})
@example("<% $parameters.a %>", {"$parameters": {"a": [1, [2.5e22, None], True, {}]}})
def test_names_in_tags(oracle: Oracle, text: str, scope: dict[str, Any]) -> None:
    compare(oracle, text, scope)


@many
@given(st.lists(st.sampled_from(SIGNS), max_size=20).map("".join))
def test_tags_of_all_kinds(oracle: Oracle, text: str) -> None:
    compare(oracle, text, {"$parameters": {"a": ["text", {"a": 1.5}]}})
