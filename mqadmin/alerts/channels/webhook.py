"""A webhook of one's own: JSON, signed by HMAC-SHA256 over the moment and the body.

X-Mqadmin-Delivery: 6d3f…            the same however often it is tried: whoever keeps it does nothing twice
X-Mqadmin-Timestamp: 1795404000      seconds since the epoch; refuse what is older than five minutes
X-Mqadmin-Signature: v1=5f3c…        hex of HMAC-SHA256(secret, "v1:" + timestamp + ":" + body)
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping

from django.utils.translation import gettext_noop

from mqadmin.alerts.messages import Message
from mqadmin.alerts.posting import Answer, Post

VERSION = "v1"


def signature(secret: str, timestamp_s: int, body: bytes) -> str:
    signed = f"{VERSION}:{timestamp_s}:".encode() + body
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def post(message: Message, address: Mapping[str, str], now_s: float) -> Post:
    body = json.dumps(message.document, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"X-Mqadmin-Delivery": str(message.document["id"]), "X-Mqadmin-Timestamp": str(int(now_s))}
    if secret := address.get("secret"):
        headers["X-Mqadmin-Signature"] = signature(secret, int(now_s), body)
    return Post(address["url"], body, headers)


def status_words(answer: Answer) -> str:
    return gettext_noop("it answered %(status)d") % {"status": answer.status}


def complaint(answer: Answer) -> str:
    """Returns why the answer is none that takes the message; "" where it is."""
    return "" if 200 <= answer.status < 300 else status_words(answer)
