"""Tokens: what was signed here is believed, everything else is refused, and no text whatever does more than that."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pailot.store import StoreError
from pailot.store.server.tokens import LONGEST, BadToken, TokenKeys, digest, sign, verify

KEY, OTHER = b"k" * 32, b"o" * 32
CLAIMS = {"username": "ann", "application": False, "iat": 1, "exp": 100}
SCALARS = st.none() | st.booleans() | st.integers() | st.text()


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def signed(header: str, payload: str, key: bytes = KEY) -> str:
    signature = hmac.digest(key, f"{header}.{payload}".encode(), hashlib.sha256)
    return f"{header}.{payload}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
def test_as_the_standard_has_it() -> None:
    """The token that jwt.io shows, made by somebody else's code."""
    token = (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
        "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ."
        "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
    )
    key = b"your-256-bit-secret"
    claims = {"sub": "1234567890", "name": "John Doe", "iat": 1516239022}
    assert verify(token, [key], 1516239022) == claims
    assert sign(claims, key) == token


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
@given(st.dictionaries(st.text().filter(lambda name: name != "exp"), SCALARS | st.lists(SCALARS)), st.binary(min_size=1))
def test_what_was_signed_comes_back(claims: dict[str, Any], key: bytes) -> None:
    token = sign(claims, key)
    assume(len(token) <= LONGEST)
    assert verify(token, [OTHER, key], 0) == claims
    assert sign(claims, key) == token
    assert len(digest(token)) == 64
    with pytest.raises(BadToken):
        verify(token, [], 0)


def test_expiry() -> None:
    token = sign(CLAIMS, KEY)
    assert verify(token, [KEY], 99.9) == CLAIMS
    with pytest.raises(BadToken, match="expired"):
        verify(token, [KEY], 100)
    for wrong in (None, True, "100", [100]):
        with pytest.raises(BadToken, match="when it expires"):
            verify(sign({**CLAIMS, "exp": wrong}, KEY), [KEY], 0)


@pytest.mark.parametrize(
    "claim",
    [
        '"exp": NaN',
        '"exp": Infinity',
        '"exp": 1e400',
        '"exp": 1' + "0" * 400,
        '"nbf": 1000',
        '"nbf": NaN',
        '"nbf": "0"',
        '"iat": 1000',
        '"iat": null',
        '"aud": "others"',
        '"sub": 5',
        '"jti": 5',
    ],
)
def test_claims_that_make_a_token_worthless(claim: str) -> None:
    """All of them signed with our key: whoever signs is not believed blindly."""
    payload = base64.urlsafe_b64encode(f'{{"username": "ann", {claim}}}'.encode()).rstrip(b"=").decode()
    with pytest.raises(BadToken):
        verify(signed(part({"alg": "HS256", "typ": "JWT"}), payload), [OTHER, KEY], 900)


def test_a_clock_that_was_set_back_a_little() -> None:
    assert verify(sign({"iat": 1000, "nbf": 1000}, KEY), [KEY], 950) == {"iat": 1000, "nbf": 1000}


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_character_is_noticed(place: int, change: int) -> None:
    token = sign(CLAIMS, KEY)
    place %= len(token)
    changed = token[:place] + chr(change) + token[place + 1 :]
    if changed != token:
        with pytest.raises(BadToken):
            verify(changed, [KEY], 0)


@given(st.text() | st.text("eyJ._-=AZ09", max_size=80))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    for token in (text, f"{text}.{text}.{text}", f"{part({'alg': 'HS256'})}.{text}."):
        with pytest.raises(BadToken) as refused:
            verify(token, [KEY], 0)
        assert "\n" not in str(refused.value)


@given(st.text("eyJ_-AZ09{}", max_size=40), st.text("eyJ_-AZ09{}", max_size=40))
def test_even_signed_nonsense(header: str, payload: str) -> None:
    with pytest.raises(BadToken):
        verify(signed(header, payload), [KEY], 0)


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "HS512", "typ": "JWT"},
        {"alg": "hs256"},
        {"typ": "JWT"},
        {"alg": "HS256", "crit": ["exp"]},
        {"alg": "HS256", "typ": "JWE"},
        ["HS256"],
        "HS256",
    ],
)
def test_no_other_algorithm(header: object) -> None:
    with pytest.raises(BadToken):
        verify(signed(part(header), part(CLAIMS)), [KEY], 0)
    with pytest.raises(BadToken):
        verify(f"{part(header)}.{part(CLAIMS)}.", [KEY], 0)


def test_only_one_text_stands_for_a_token() -> None:
    token = sign(CLAIMS, KEY)
    for other in (token + "=", token + "\n", " " + token, token.replace("_", "/"), token + ".", token + "A"):
        if other != token:
            with pytest.raises(BadToken):
                verify(other, [KEY], 0)
    deep = base64.urlsafe_b64encode(b"[" * 3000).rstrip(b"=").decode()
    with pytest.raises(BadToken):
        verify(signed(part({"alg": "HS256"}), deep[:3000]), [KEY], 0)
    with pytest.raises(BadToken):
        verify(sign({"long": "x" * 5000}, KEY), [KEY], 0)


def test_the_file_of_keys(tmp_path: Path) -> None:
    keys = TokenKeys(str(tmp_path))
    first = keys.keys()
    assert first == TokenKeys(str(tmp_path)).keys()
    assert len(first[0]) == 64
    assert os.stat(keys.file).st_mode & 0o777 == 0o600
    keys.add_key()
    both = keys.keys()
    assert both[1:] == first
    assert verify(sign(CLAIMS, first[0]), both, 0) == CLAIMS
    assert keys.drop_old_keys() == 1
    assert keys.keys() == both[:1]
    assert os.listdir(tmp_path / "keys") == ["token.key"]
    Path(keys.file).write_text("\n")
    with pytest.raises(StoreError, match="holds no key"):
        keys.keys()
