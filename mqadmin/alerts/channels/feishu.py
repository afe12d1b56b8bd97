"""Feishu's custom bots with their sign: https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot.

The sign is in the body: base64 of HMAC-SHA256 of nothing, with timestamp + "\\n" + secret as the key; seconds.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from mqadmin.alerts.channels import webhook
from mqadmin.alerts.messages import Message
from mqadmin.alerts.posting import Answer, Post


def sign(secret: str, timestamp_s: int) -> str:
    return base64.b64encode(hmac.new(f"{timestamp_s}\n{secret}".encode(), b"", hashlib.sha256).digest()).decode()


def post(message: Message, address: Mapping[str, str], now_s: float) -> Post:
    lines: list[list[dict[str, str]]] = [
        [{"tag": "a", "text": one.name, "href": one.url}, {"tag": "text", "text": f" {one.words}"}]
        for one in message.lines
    ]
    if message.rest:
        lines.append([{"tag": "text", "text": message.rest}])
    lines.append([{"tag": "a", "text": message.url_words.rstrip(":："), "href": message.url}])
    # The client shows whichever language there is.
    content = {"post": {"zh_cn": {"title": message.title, "content": lines}}}
    body: dict[str, Any] = {"msg_type": "post", "content": content}
    if secret := address.get("secret"):
        body |= {"timestamp": str(int(now_s)), "sign": sign(secret, int(now_s))}
    return Post(address["url"], json.dumps(body, ensure_ascii=False).encode())


def complaint(answer: Answer) -> str:
    """Reads `{"code": 0}`, or `{"StatusCode": 0}` as older ones answer."""
    if answer.status != 200:
        return webhook.status_words(answer)
    try:
        found = json.loads(answer.body)
    except ValueError:
        return gettext_noop("it answered 200 with something that is not JSON")
    if not isinstance(found, dict) or found.get("code", found.get("StatusCode")) != 0:
        code = found.get("code") if isinstance(found, dict) else None
        said = str(found.get("msg", "")) if isinstance(found, dict) else ""
        return gettext_noop("it answered error %(code)s: %(reason)s") % {"code": code, "reason": said[:200]}
    return ""
