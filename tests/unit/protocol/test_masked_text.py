"""Values of a job file are replaced where they stand; everything else stays as it was written."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pailot.protocol.masked_text import with_values_shown
from pailot.protocol.secrecy import MASK
from pailot.protocol.yaml import YamlError, parse
from pailot.protocol.yaml.writer import dump

WRITTEN = """\
# A job of mine
name: first   # the name
secrets:
  plain: hunter2secret # keep
  "quoted key": "a \\"b\\" c"
  single: 'it''s'
  block: |
    line one
    line two
  number: 12345
  flow: {inner: abcdef, other: [one1, two2]}
  nothing:
commands:   # after
  - echo   hello
"""
SHOWN = """\
# A job of mine
name: second   # the name
secrets:
  plain: '******' # keep
  "quoted key": '******'
  single: '******'
  block: '******'
  number: '******'
  flow: {inner: '******', other: ['******', '******']}
  nothing:
commands:   # after
  - echo   hello
"""


def masked_secrets(path: tuple[str | int, ...], value: object) -> object:
    if path[0] == "secrets":
        return value if value is None else MASK
    return "second" if path == ("name",) else value


def test_secrets_are_masked_in_place_and_comments_stay() -> None:
    assert with_values_shown(WRITTEN, masked_secrets) == SHOWN


def test_a_credential_inside_a_script_of_several_lines() -> None:
    text = "commands:\n  - |\n    first\n    curl -u me:hunter2secret x # note\n\n    last\nnext: 1\n"

    def shown(path: tuple[str | int, ...], value: object) -> object:
        return value.replace("hunter2secret", MASK) if isinstance(value, str) else value

    assert with_values_shown(text, shown) == text.replace("hunter2secret", MASK)


@pytest.mark.parametrize(
    "text",
    [
        "secrets: &a {x: abcd}\nmore: *a\n",  # one value in two places
        "secrets:\n  x: one\n    two\n",  # a text without quotes over two lines
        "secrets:\n  x: !!str abcd\n",
        "secrets: [",
    ],
)
def test_what_cannot_be_replaced_in_place_is_left_to_others(text: str) -> None:
    made = with_values_shown(text, masked_secrets)
    assert made is None or "abcd" not in made


leaves = st.text(min_size=1, max_size=20) | st.integers() | st.booleans() | st.none()
secrets = st.dictionaries(st.text(min_size=1, max_size=8), leaves | st.lists(leaves, max_size=3), max_size=5)


@given(secrets)
def test_a_text_that_is_returned_says_what_it_should(hidden: dict[str, object]) -> None:
    text = dump({"name": "first", "secrets": hidden, "last": [1, "x"]})
    try:
        before = parse(text).root
    except YamlError:
        assume(False)
    made = with_values_shown(text, masked_secrets)
    assume(made is not None)
    assert made is not None
    after = parse(made).root
    assert after["last"] == before["last"]
    assert after["name"] == "second"

    def check(value: object) -> None:
        if isinstance(value, dict):
            for item in value.values():
                check(item)
        elif isinstance(value, list):
            for item in value:
                check(item)
        else:
            assert value in (None, MASK)

    check(after["secrets"])
