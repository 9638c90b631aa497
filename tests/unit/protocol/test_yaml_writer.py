"""What `dump` writes reads back as the same value, here and in other readers, and looks like a job file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pailot.protocol.yaml import Timestamp, parse
from pailot.protocol.yaml.writer import dump

# Texts made of what means something in YAML come much more often than by chance.
MEANINGFUL = "ab:# \n\t-'\"\\{}[],&*!|>%@`?~.0123456789exnu<=$/_\r\x85\u2028\ufeff"
WORDS = (
    "null true yes No on OFF y 010 1e3 0o7 08 1:30 2020-01-01 << = --- ... ~ .inf -.Inf .nan - ? : [] {} 0x1F 1_000 +1".split()
)
EXACT = 2**53

texts = st.text() | st.text(alphabet=MEANINGFUL) | st.sampled_from(WORDS)
scalars = st.none() | st.booleans() | st.integers(-EXACT, EXACT) | st.floats(allow_nan=False) | texts
keys = texts.filter(lambda text: text != "__proto__")  # which the reader refuses
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=12
)


@settings(deadline=None)
@given(values)
@example({"a": "\n"})
@example({"a": "x\n\n", "b": ["y\n\n\n", {"c": "\nz"}]})
@example({"a": " x\ny"})
@example([[[], [{}]], {"": {"": [[]]}}])
@example({"a": "x\n  \ny", "b": "x\n\t"})
def test_every_value_reads_back(value: Any) -> None:
    document = parse(dump(value))
    assert document.root == value


@settings(deadline=None)
@given(values)
def test_nothing_written_is_read_otherwise_by_yaml_1_2(value: Any) -> None:
    assert not parse(dump(value)).ambiguous


@settings(deadline=None)
@given(values)
def test_pyyaml_reads_the_same(value: Any) -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(dump(_without_numbers(value))) == _without_numbers(value)


def _without_numbers(value: Any) -> Any:
    """PyYAML takes 1e+22 for a text, as OpenPAI does not."""
    if isinstance(value, dict):
        return {key: _without_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_numbers(item) for item in value]
    return None if isinstance(value, float) else value


@settings(deadline=None)
@given(st.text().filter(lambda text: "\n" not in text), st.sampled_from(["", "x", "'", '"', "\\"]))
def test_one_line_texts_stay_on_one_line(text: str, tail: str) -> None:
    assert dump({"k": text + tail}).count("\n") == 1


def test_a_job_file_looks_as_one_writes_it() -> None:
    job = {
        "protocolVersion": 2,
        "name": "hello",
        "prerequisites": [{"type": "dockerimage", "uri": "ubuntu:22.04", "auth": {}}, {"type": "data", "uri": []}],
        "taskRoles": {"worker": {"commands": ["echo hi", "if true; then\n  date\nfi\n", "<% $script.name %>/run.sh", "./go -x"]}},
        "extras": {"com.microsoft.pai.runtimeplugin": [["a", ["b"]], None, True, 0.5]},
    }
    assert dump(job) == (
        "protocolVersion: 2\n"
        "name: hello\n"
        "prerequisites:\n"
        "  - type: dockerimage\n"
        "    uri: ubuntu:22.04\n"
        "    auth: {}\n"
        "  - type: data\n"
        "    uri: []\n"
        "taskRoles:\n"
        "  worker:\n"
        "    commands:\n"
        "      - echo hi\n"
        "      - |\n"
        "        if true; then\n"
        "          date\n"
        "        fi\n"
        "      - <% $script.name %>/run.sh\n"
        "      - ./go -x\n"
        "extras:\n"
        "  com.microsoft.pai.runtimeplugin:\n"
        "    - - a\n"
        "      - - b\n"
        "    - null\n"
        "    - true\n"
        "    - 0.5\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain text, with [brackets] and 'quotes'", "plain text, with [brackets] and 'quotes'"),
        ("été", "été"),
        ("/bin/true", "/bin/true"),
        ("$HOME/x", "$HOME/x"),
        ("../x", "../x"),
        ("a:b", "a:b"),
        ("a#b", "a#b"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("a:", "'a:'"),
        ("a ", "'a '"),
        ("", "''"),
        ("it's: so", '"it\'s: so"'),
        ('it\'s: "so"', "'it''s: \"so\"'"),
        ("it's: \\so", "'it''s: \\so'"),
        ("null", "'null'"),
        ("Yes", "'Yes'"),
        ("off", "'off'"),
        ("12", "'12'"),
        ("1.2.3", "'1.2.3'"),
        ("-x", "'-x'"),
        ("<<", "'<<'"),
        ("é\t", '"é\\t"'),
        ("a\0b\x1b\r\x7f\x85\xa0\u2028\u200d\U000e0001", '"a\\0b\\e\\r\\x7f\\N\\_\\L\\u200d\\U000e0001"'),
        ('\a\b\v\f\u2029"\\', '"\\a\\b\\v\\f\\P\\"\\\\"'),
        *[(word, f"'{word}'") for word in ("y", "n", "yes", "no", "on", "off", "NO")],
        ("\n", '"\\n"'),
        (" a\nb", '" a\\nb"'),
        ("a\nb", "|-\n  a\n  b"),
        ("a\n\nb\n", "|\n  a\n\n  b"),
        ("a\n\tb\n\n", "|+\n  a\n  \tb\n"),
        ("\na\n", "|\n\n  a"),
    ],
)
def test_how_a_text_is_written(text: str, written: str) -> None:
    assert dump({"k": text}) == f"k: {written}\n"
    assert dump(text) == written + "\n"
    if "\n" not in written:
        assert dump({text: 1}) == f"{written}: 1\n"


def test_a_key_of_several_lines_is_quoted() -> None:
    assert dump({"a\nb": 1}) == '"a\\nb": 1\n'


@pytest.mark.parametrize(
    ("value", "written"),
    [(1e22, "1e+22"), (float("inf"), ".inf"), (float("-inf"), "-.inf"), (float("nan"), ".nan"), (-7, "-7"), ((1, 2), "- 1\n- 2")],
)
def test_numbers_and_tuples(value: Any, written: str) -> None:
    assert dump(value) == written + "\n"


def test_dates_and_bytes_that_a_file_may_hold() -> None:
    root = parse("a: 2019-01-01\nb: !!binary aGk=\n").root
    assert parse(dump(root)).root == root
    assert isinstance(parse(dump(root)).root["a"], Timestamp)
    assert parse(dump(root)).root["b"] == b"hi"


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="set has no form"):
        dump({"a": {1}})
