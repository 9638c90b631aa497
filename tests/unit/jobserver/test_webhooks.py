"""Messages to webhooks: their form for each receiver, and signatures that a receiver can check."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pailot.jobserver.webhooks import check_template, message, refusal
from pailot.settings import BadSetting

NOTICE = {"event": "failed", "job": "ann~bad", "reason": "exited with <7>"}
WORDS = "Job ann~bad has failed.\nWhy: exited with <7>"


def _said(template: str, secret: str = "") -> dict[str, Any]:
    made = message(template, "https://host/hook", secret, NOTICE, WORDS, 1_700_000_000.5)
    said: dict[str, Any] = json.loads(made.body)
    return said


def test_programs_get_every_key_and_a_signature_over_time_and_body() -> None:
    made = message("pailot", "https://host/hook", "s3cret", NOTICE, WORDS, 1_700_000_000.5)
    assert json.loads(made.body) == NOTICE
    signed = hmac.new(b"s3cret", b"1700000000." + made.body, hashlib.sha256).hexdigest()
    assert made.headers["X-Pailot-Timestamp"] == "1700000000"
    assert made.headers["X-Pailot-Signature"] == f"sha256={signed}"


def test_without_a_secret_nothing_is_signed() -> None:
    for template in ("pailot", "slack", "teams", "dingtalk", "feishu"):
        made = message(template, "https://host/hook", "", NOTICE, WORDS, 1.0)
        assert not any(name.startswith("X-Pailot") for name in made.headers)
        assert made.address == "https://host/hook"
        assert "sign" not in json.loads(made.body)


def test_chats_get_their_own_form() -> None:
    assert _said("slack") == {"text": "Job ann~bad has failed.\nWhy: exited with &lt;7&gt;"}
    assert _said("dingtalk") == {"msgtype": "text", "text": {"content": WORDS}}
    assert _said("feishu") == {"msg_type": "text", "content": {"text": WORDS}}
    (attached,) = _said("teams")["attachments"]
    assert attached["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert [part["text"] for part in attached["content"]["body"]] == ["Job ann~bad has failed.", "Why: exited with <7>"]


def test_dingtalk_is_signed_in_the_address() -> None:
    made = message("dingtalk", "https://host/robot?access_token=x", "SEC1", NOTICE, WORDS, 1_700_000_000.5)
    query = parse_qs(urlsplit(made.address).query)
    expected = hmac.new(b"SEC1", b"1700000000500\nSEC1", hashlib.sha256).digest()
    assert query["access_token"] == ["x"]
    assert query["timestamp"] == ["1700000000500"]
    assert base64.b64decode(query["sign"][0]) == expected


def test_feishu_is_signed_in_the_body() -> None:
    said = _said("feishu", "SEC2")
    expected = base64.b64encode(hmac.new(b"1700000000\nSEC2", b"", hashlib.sha256).digest()).decode()
    assert (said["timestamp"], said["sign"]) == ("1700000000", expected)


@pytest.mark.parametrize(
    ("template", "reply", "why"),
    [
        ("dingtalk", b'{"errcode":310000,"errmsg":"sign not match"}', "sign not match"),
        ("dingtalk", b'{"errcode":0,"errmsg":"ok"}', None),
        ("feishu", b'{"code":19021,"msg":"sign match fail"}', "sign match fail"),
        ("feishu", b'{"code":0}', None),
        ("feishu", b"not JSON", None),
        ("feishu", b"[]", None),
        ("pailot", b'{"code":7}', None),
    ],
)
def test_a_refusal_in_the_reply_is_found(template: str, reply: bytes, why: str | None) -> None:
    assert refusal(template, reply) == why


def test_an_unknown_template_is_named() -> None:
    with pytest.raises(BadSetting, match="should be one of pailot, slack, teams, dingtalk, feishu, is 'irc'"):
        check_template("irc")
