"""Rows of the outbox as the runtime leaves them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from consumer.outbox.models import OutboxMessage, OutboxState


def make_outbox_message(
    message_id: str, *, now: datetime, state: OutboxState = OutboxState.PENDING, **fields: Any
) -> None:
    ended_at = None if state == OutboxState.PENDING else now
    values = {"topic": "orders", "body": b"{}", "created_at": now, "next_attempt_at": now, "ended_at": ended_at}
    OutboxMessage.objects.create(message_id=message_id, state=state, **{**values, **fields})
