"""Secrets are masked in a stream however it is cut, and nothing else is touched or delayed."""

from __future__ import annotations

import base64
import json
import math
import random
import re
import shlex
import string
import urllib.parse
from itertools import combinations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pailot.runfolder.masking import MASK, Masker, _forms, mask_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def streamed(secrets: Iterable[str] | Masker, chunks: Iterable[bytes]) -> bytes:
    masker = secrets.twin() if isinstance(secrets, Masker) else Masker(secrets)
    return b"".join(masker.feed(chunk) for chunk in chunks) + masker.flush()


def occurrences(data: bytes, forms: Iterable[bytes]) -> list[tuple[int, int]]:
    return sorted(
        (at, at + len(form)) for form in forms for at in range(len(data) - len(form) + 1) if data[at : at + len(form)] == form
    )


def model(data: bytes, forms: Iterable[bytes]) -> bytes:
    """Every occurrence is masked; those that overlap share one mask."""
    out, position = b"", 0
    for start, end in occurrences(data, forms):
        if start >= position:
            out += data[position:start] + MASK
        position = max(position, end)
    return out + data[position:]


def leftmost_longest(data: bytes, forms: Iterable[bytes]) -> bytes:
    return re.sub(b"|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)), lambda _: MASK, data)


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(data)]
    return [data[edges[number] : edges[number + 1]] for number in range(len(edges) - 1)]


few_letters = st.text(alphabet="ab\n", min_size=4, max_size=9)
any_text = st.text(alphabet=st.characters(max_codepoint=0x2FF), min_size=4, max_size=12)


@st.composite
def cut_texts(draw: st.DrawFn, secret: st.SearchStrategy[str]) -> tuple[list[str], list[bytes]]:
    """Secrets, and chunks of a text full of them and of their pieces."""
    secrets = draw(st.lists(secret, min_size=1, max_size=4))
    forms = sorted(_forms(secrets))
    whole = st.sampled_from(forms)
    part = whole.flatmap(lambda form: st.integers(0, len(form)).map(lambda end: form[:end]))
    rest = whole.flatmap(lambda form: st.integers(0, len(form)).map(lambda start: form[start:]))
    other = st.binary(max_size=3) | st.sampled_from([b"a", b"b", b"="])
    data = b"".join(draw(st.lists(whole | part | rest | other, max_size=12)))
    return secrets, pieces(data, draw(st.lists(st.integers(0, len(data)), max_size=8)))


@given(cut_texts(few_letters))
@example((["abab", "babb"], [b"aba", b"b", b"bx"]))
@example((["aaaa"], [b"aaaaaa"]))
def test_overlapping_secrets_in_any_chunks_are_masked_as_in_one(case: tuple[list[str], list[bytes]]) -> None:
    secrets, chunks = case
    assert streamed(secrets, chunks) == model(b"".join(chunks), _forms(secrets))


@given(cut_texts(any_text))
def test_any_secrets_in_any_chunks_are_masked_as_in_one(case: tuple[list[str], list[bytes]]) -> None:
    secrets, chunks = case
    assert streamed(secrets, chunks) == model(b"".join(chunks), _forms(secrets))


@given(cut_texts(few_letters | any_text))
def test_without_partial_overlaps_the_leftmost_longest_match_is_masked(case: tuple[list[str], list[bytes]]) -> None:
    secrets, chunks = case
    data, forms = b"".join(chunks), _forms(secrets)
    spans = occurrences(data, forms)
    assume(not any(a < c < b < d for a, b in spans for c, d in spans))
    assert streamed(secrets, chunks) == leftmost_longest(data, forms)


@given(cut_texts(few_letters | any_text))
def test_only_the_beginning_of_a_secret_is_held_back(case: tuple[list[str], list[bytes]]) -> None:
    secrets, chunks = case
    forms = _forms(secrets)
    beginnings = {form[:size] for form in forms for size in range(1, len(form))}
    masker = Masker(secrets)
    shown, seen = b"", b""
    for chunk in chunks:
        shown += masker.feed(chunk)
        seen += chunk
        held = max((size for size in range(1, len(seen) + 1) if seen[-size:] in beginnings), default=0)
        cut = len(seen) - held
        wanted, position = b"", 0
        for start, end in occurrences(seen, forms):
            if start < cut:
                wanted += seen[position:start] + MASK if start >= position else b""
                position = max(position, end)
        assert shown == wanted + seen[position:cut]


def test_every_two_cuts_of_a_text() -> None:
    secrets = ["hunter22", "hunter2222", "unter", "r22-end", "two\nlines here"]
    data = b"a hunter22 b hunter222 hunter2222 hunter22-end, two\r\nlines here\nhunte hunter22"
    wanted = model(data, _forms(secrets))
    assert wanted == b"a ****** b ******2 ****** ******, two\r\n******\nhunte ******"
    prepared = Masker(secrets)
    for cuts in combinations(range(len(data) + 1), 2):
        assert streamed(prepared, pieces(data, cuts)) == wanted, cuts
    assert streamed(secrets, [data[at : at + 1] for at in range(len(data))]) == wanted


def test_secrets_that_share_an_end_and_a_beginning_leave_nothing_over() -> None:
    assert streamed(["abcdef", "defghi"], [b"xabcdefghix"]) == b"x******x"
    assert streamed(["abcdef", "defghi"], [b"xabcdef", b"gh", b"ix"]) == b"x******x"
    assert streamed(["abcdef", "defghi"], [b"xabcdef", b"ghx"]) == b"x******ghx"
    assert streamed(["abcd"], [b"abcdabcd"]) == MASK * 2


def test_a_mask_goes_out_at_once_even_if_it_may_grow() -> None:
    masker = Masker(["abcdef", "defghi"])
    assert masker.feed(b"> abcdef") == b"> ******"
    assert masker.feed(b"ghi") == b""
    assert masker.feed(b"\n") == b"\n"


def test_prompts_come_through_at_once() -> None:
    masker = Masker(["hunter22", "Passphrase"])
    assert masker.feed(b"Password: ") == b"Password: "
    assert masker.feed(b"Pass") == b""
    assert masker.feed(b"word?") == b"Password?"
    assert masker.feed(b"hunter22") == MASK
    assert masker.flush() == b""


def test_the_beginning_of_a_secret_is_shown_at_the_end() -> None:
    masker = Masker(["abcd", "abcdefgh"])
    assert masker.feed(b"x abcdef") == b"x "
    assert masker.flush() == b"******ef"
    assert masker.flush() == b""


def test_short_secrets_are_not_masked() -> None:
    assert mask_text("abc äöü abcd", ["abc", "äöü", ""]) == "abc äöü abcd"
    assert Masker(["abc"]).feed(b"abc") == b"abc"


@given(st.lists(st.binary(max_size=50), max_size=5), st.lists(st.just("\N{SNOWMAN}" * 4), max_size=1))
def test_bytes_without_secrets_pass_unchanged(chunks: list[bytes], secrets: list[str]) -> None:
    assert streamed(secrets, chunks) == b"".join(chunks)


AWKWARD = "pä/ss wörd+\"1'\\2\t😀&~!*50%2B\x7f"


@pytest.mark.parametrize("secret", ["hunter22", "abcd", "four!", "x" * 31, AWKWARD, "key:" + "0123456789abcdef" * 9])
@pytest.mark.parametrize(
    "form",
    [
        lambda text: text,
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
        lambda text: base64.b64encode((text + "\n").encode()).decode(),
        lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
        urllib.parse.quote,
        lambda text: urllib.parse.quote(text, safe=""),
        urllib.parse.quote_plus,
        lambda text: urllib.parse.quote(text, safe="!*'()"),
        lambda text: re.sub("%..", lambda match: match[0].lower(), urllib.parse.quote(text, safe="")),
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
        lambda text: shlex.quote(text).replace("'\"'\"'", "'\\''").strip("'"),
    ],
)
def test_forms_of_a_secret_are_masked(secret: str, form: object) -> None:
    assert callable(form)
    assert mask_text(f"({form(secret)})", [secret]) == "(******)"


@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
@pytest.mark.parametrize("after", ["", "x", "xy", "\n"])
def test_base64_of_a_text_with_the_secret_in_it_is_masked(before: str, after: str) -> None:
    secret = "correct-horse-battery"
    encoded = base64.b64encode(f"{before}{secret}{after}".encode()).decode()
    masked = mask_text(f"Authorization: Basic {encoded}", [secret])
    assert "******" in masked
    # What remains beside the mask holds at most four bits of the secret at each end, and none at an end without neighbours.
    left, right = masked.removeprefix("Authorization: Basic ").split("******")
    assert len(left) == math.ceil(len(before) * 8 / 6)
    assert len(right.rstrip("=")) <= (math.ceil((len(after) * 8 + 4) / 6) if after.strip() else 0)


def test_base64_broken_into_lines_is_masked() -> None:
    secret = "".join(random.Random(5).choices(string.ascii_letters, k=200))
    masked = mask_text(base64.encodebytes(secret.encode()).decode(), [secret])
    assert re.fullmatch(r"(\*{6}\n)+", masked)


def test_lines_of_a_secret_are_masked_wherever_they_are() -> None:
    secret = "-----BEGIN KEY-----\r\n  AbCdEfGh\n\n    \nxy\nIjKlMnOp\n"
    text = "AbCdEfGh\n\txy IjKlMnOp    x\n-----BEGIN KEY-----|"
    assert mask_text(text, [secret]) == "******\n\txy ******    x\n******|"


def test_the_line_break_at_a_files_end_is_no_part_of_the_secret() -> None:
    assert mask_text("hunter22 " + base64.b64encode(b"hunter22").decode(), ["hunter22\n"]) == "****** ******"


def test_text_that_is_not_unicode() -> None:
    assert mask_text("\udcff secret \udcff", ["secret"]) == "\udcff ****** \udcff"
    assert mask_text("\ud800 secret \ud800", ["secret"]) == "\ud800 ****** \ud800"
    assert mask_text("a se\udcffet b", ["se\udcffet"]) == "a ****** b"
    assert mask_text("a se\ud800et b", ["se\ud800et"]) == "a ****** b"


def test_twins_share_secrets_and_nothing_else() -> None:
    one = Masker(["hunter22"])
    two = one.twin()
    assert (one.feed(b"hunt"), two.feed(b"er22")) == (b"", b"er22")
    assert (two.feed(b"hunter22"), one.feed(b"er22")) == (MASK, MASK)


def log(rng: random.Random, alphabet: str, secrets: list[str], size: int) -> bytes:
    lines: list[str] = []
    while size > 0:
        line = "".join(rng.choices(alphabet, k=60)) + (rng.choice(secrets) if rng.random() < 0.05 else "") + "\n"
        lines.append(line)
        size -= len(line)
    return "".join(lines).encode()


def fast_model(data: bytes, forms: set[bytes]) -> bytes:
    spans = []
    for form in forms:
        at = data.find(form)
        while at >= 0:
            spans.append((at, at + len(form)))
            at = data.find(form, at + 1)
    out, position = [], 0
    for start, end in sorted(spans):
        if start >= position:
            out += [data[position:start], MASK]
        position = max(position, end)
    return b"".join(out) + data[position:]


@pytest.mark.parametrize(
    "alphabet", ["ab", "0123456789. ", string.ascii_lowercase + " ", string.ascii_letters + string.digits + "+/"]
)
@pytest.mark.parametrize("size", [500, 4096, 65536])
def test_long_logs_of_any_kind(alphabet: str, size: int) -> None:
    rng = random.Random(f"{alphabet} {size}")
    secrets = ["".join(rng.choices(string.ascii_letters + string.digits, k=rng.randint(8, 40))) for _ in range(10)] + ["abababab"]
    data = log(rng, alphabet, secrets, 200_000)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert streamed(secrets, chunks) == fast_model(data, _forms(secrets))


def test_binary_output_does_not_fill_memory() -> None:
    masker = Masker(["hunter22"])
    rng = random.Random(1)
    for _ in range(6_000):
        masker.feed(rng.randbytes(8))
    assert len(masker._search._ends) <= 4097
