"""DingTalk's custom robots with their sign: https://open.dingtalk.com/document/orgapp/custom-robot-access.

The sign is in the address: base64 of HMAC-SHA256(secret, timestamp + "\\n" + secret), the timestamp in milliseconds.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from urllib.parse import quote_plus

from mqadmin.alerts.channels import markdown
from mqadmin.alerts.messages import Message
from mqadmin.alerts.posting import Answer, Post

TEXT_BYTES_MAX = 15_000


def sign(secret: str, timestamp_ms: int) -> str:
    """Returns the sign as it stands in the address."""
    digest = hmac.new(secret.encode(), f"{timestamp_ms}\n{secret}".encode(), hashlib.sha256).digest()
    return quote_plus(base64.b64encode(digest))


def post(message: Message, address: Mapping[str, str], now_s: float) -> Post:
    content = {"title": message.title, "text": markdown.text(message, TEXT_BYTES_MAX)}
    body = json.dumps({"msgtype": "markdown", "markdown": content}, ensure_ascii=False).encode()
    url = address["url"]
    if secret := address.get("secret"):
        timestamp_ms = int(now_s * 1000)
        url += f"{'&' if '?' in url else '?'}timestamp={timestamp_ms}&sign={sign(secret, timestamp_ms)}"
    return Post(url, body)


def complaint(answer: Answer) -> str:
    return markdown.error_code_complaint(answer)
