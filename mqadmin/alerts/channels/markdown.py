"""Messages in the Markdown of DingTalk and WeCom."""

from __future__ import annotations

import json
import re

from django.utils.translation import gettext_noop

from mqadmin.alerts.channels import webhook
from mqadmin.alerts.messages import Message
from mqadmin.alerts.posting import Answer

_SIGNS = re.compile(r"([\\`*_\[\]<>#])")


def escaped(text: str) -> str:
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def text(message: Message, bytes_max: int) -> str:
    """Returns the message with as many lines as fit; the page that it links to has all."""
    head, end = f"### {escaped(message.title)}", f"[{escaped(message.url_words.rstrip(':：'))}]({message.url})"
    lines = [f"- [{escaped(one.name)}]({one.url}) {escaped(one.words)}" for one in message.lines]
    rest = [escaped(message.rest)] if message.rest else []
    while True:
        whole = "\n\n".join([head, *(["\n".join(lines)] if lines else []), *rest, end])
        if len(whole.encode()) <= bytes_max or not lines:
            return whole.encode()[:bytes_max].decode(errors="ignore")
        lines.pop()
        rest = ["…"]


def error_code_complaint(answer: Answer) -> str:
    """Reads `{"errcode": 0, "errmsg": "ok"}`: these answer 200 to everything."""
    if answer.status != 200:
        return webhook.status_words(answer)
    try:
        found = json.loads(answer.body)
    except ValueError:
        return gettext_noop("it answered 200 with something that is not JSON")
    if not isinstance(found, dict) or found.get("errcode") != 0:
        code = found.get("errcode") if isinstance(found, dict) else None
        said = str(found.get("errmsg", "")) if isinstance(found, dict) else ""
        return gettext_noop("it answered error %(code)s: %(reason)s") % {"code": code, "reason": said[:200]}
    return ""
