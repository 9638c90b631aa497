"""Messages to a web address: their body in the form that the receiver understands, their signature, and what it replies.

Pure: a `Message` is made here, `notifications` sends it. Each chat system signs in its own way, with the same secret:

- `pailot`: the header `X-Pailot-Signature: sha256=HEX` over `TIMESTAMP.BODY`, and `X-Pailot-Timestamp`;
- `slack`, `teams`: the address itself is the secret; the headers of `pailot` are sent as well;
- `dingtalk`: the query keys `timestamp` and `sign`;
- `feishu`: the keys `timestamp` and `sign` in the body.
"""

from __future__ import annotations

import base64
import hmac
import json
from urllib.parse import quote

from ..settings import BadSetting
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MAX_REPLY_BYTES = 4096
"""More of a reply is not read."""


class Message(Value):
    """One POST: where to, what it says, and the headers that belong to it."""

    address: str
    body: bytes
    headers: Mapping[str, str]


def message(template: str, address: str, secret: str, notice: Mapping[str, Any], words: str, now_seconds: float) -> Message:
    """Return the POST that tells a notice.

    `words` is the notice as a text for people. `secret` may be empty: the message is not signed then.
    """
    form = _FORMS[template]
    said = form(notice, words)
    if template == "feishu" and secret:
        said = {**said, "timestamp": str(int(now_seconds)), "sign": _feishu_sign(secret, int(now_seconds))}
    if template == "dingtalk" and secret:
        address = _dingtalk_address(address, secret, int(now_seconds * 1000))
    body = json.dumps(said, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "pailot"}
    if secret and template not in ("dingtalk", "feishu"):
        timestamp = str(int(now_seconds))
        headers["X-Pailot-Timestamp"] = timestamp
        headers["X-Pailot-Signature"] = f"sha256={signature(secret, timestamp, body)}"
    return Message(address, body, headers)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return what a receiver computes for itself, and compares: HMAC-SHA-256 over `TIMESTAMP.BODY`, in hexadecimal digits."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, "sha256").hexdigest()


def refusal(template: str, reply: bytes) -> str | None:
    """Return why a reply with a good status is a refusal all the same, or None.

    DingTalk and Feishu reply 200 to messages that they drop, and say so in the body.
    """
    key = {"dingtalk": "errcode", "feishu": "code"}.get(template)
    if key is None:
        return None
    try:
        said = json.loads(reply)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get(key, 0) == 0:
        return None
    return str(said.get("errmsg") or said.get("msg") or said[key])[:200]


def check_template(template: str) -> str:
    """Return the template if there is one of this name. Raises BadSetting."""
    if template not in _FORMS:
        raise BadSetting(f"webhook_template: should be one of {', '.join(_FORMS)}, is {template!r}")
    return template


def _plain(notice: Mapping[str, Any], _: str) -> dict[str, object]:
    return dict(notice)


def _slack(_: Mapping[str, Any], words: str) -> dict[str, object]:
    # Slack reads &, < and > as the beginning of links and mentions.
    return {"text": words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def _teams(_: Mapping[str, Any], words: str) -> dict[str, object]:
    title, *rest = words.split("\n", 1)
    parts = [{"type": "TextBlock", "text": title, "weight": "Bolder", "wrap": True}]
    parts += [{"type": "TextBlock", "text": each, "wrap": True} for each in rest]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": parts,
    }
    return {"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}]}


def _dingtalk(_: Mapping[str, Any], words: str) -> dict[str, object]:
    return {"msgtype": "text", "text": {"content": words}}


def _feishu(_: Mapping[str, Any], words: str) -> dict[str, object]:
    return {"msg_type": "text", "content": {"text": words}}


_FORMS: dict[str, Callable[[Mapping[str, Any], str], dict[str, object]]] = {
    "pailot": _plain,
    "slack": _slack,
    "teams": _teams,
    "dingtalk": _dingtalk,
    "feishu": _feishu,
}


def _dingtalk_address(address: str, secret: str, now_ms: int) -> str:
    sign = base64.b64encode(hmac.digest(secret.encode(), f"{now_ms}\n{secret}".encode(), "sha256")).decode()
    return f"{address}{'&' if '?' in address else '?'}timestamp={now_ms}&sign={quote(sign, safe='')}"


def _feishu_sign(secret: str, now_seconds: int) -> str:
    return base64.b64encode(hmac.digest(f"{now_seconds}\n{secret}".encode(), b"", "sha256")).decode()
