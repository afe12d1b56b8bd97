"""Slack's incoming webhooks: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mqadmin.alerts.channels import webhook
from mqadmin.alerts.messages import Line, Message
from mqadmin.alerts.posting import Answer, Post

# Of a section's text.
TEXT_CHARS_MAX = 3000


def post(message: Message, address: Mapping[str, str], _now_s: float) -> Post:
    lines = [_line(one) for one in message.lines] + ([escaped(message.rest)] if message.rest else [])
    lines.append(f"<{message.url}|{escaped(message.url_words.rstrip(':：'))}>")
    body = {
        # What a notification shows.
        "text": escaped(message.title),
        "blocks": [
            _section(f"*{escaped(message.title)}*"),
            *(_section(text) for text in _together(lines)),
        ],
    }
    return Post(address["url"], json.dumps(body, ensure_ascii=False).encode())


def escaped(text: str) -> str:
    """Returns a text in which nothing is a link, a mention or a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _line(one: Line) -> str:
    return f"<{one.url}|{escaped(one.name).replace('|', '¦')}> {escaped(one.words)}"


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:TEXT_CHARS_MAX]}}


def _together(lines: list[str]) -> list[str]:
    """Returns the lines in as few texts as may be, none cut in the middle."""
    texts = [""]
    for line in lines:
        if len(texts[-1]) + len(line) >= TEXT_CHARS_MAX:
            texts.append("")
        texts[-1] += f"\n{line}" if texts[-1] else line
    return texts


def complaint(answer: Answer) -> str:
    return webhook.complaint(answer)
