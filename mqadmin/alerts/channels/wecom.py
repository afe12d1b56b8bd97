"""WeCom's group robots: https://developer.work.weixin.qq.com/document/path/91770. They have no sign."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mqadmin.alerts.channels import markdown
from mqadmin.alerts.messages import Message
from mqadmin.alerts.posting import Answer, Post

TEXT_BYTES_MAX = 4096


def post(message: Message, address: Mapping[str, str], _now_s: float) -> Post:
    content = {"content": markdown.text(message, TEXT_BYTES_MAX)}
    return Post(address["url"], json.dumps({"msgtype": "markdown", "markdown": content}, ensure_ascii=False).encode())


def complaint(answer: Answer) -> str:
    return markdown.error_code_complaint(answer)
