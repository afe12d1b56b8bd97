"""Says in each log line which message was being consumed.

CONSUMER_MIDDLEWARE = ["consumer.middleware.logging_context.logging_context", …]
LOGGING = {
    "filters": {"message": {"()": "consumer.middleware.logging_context.MessageFields"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "filters": ["message"], "formatter": "plain"}},
    "formatters": {"plain": {"format": "%(asctime)s %(mq_group)s %(mq_message_id)s %(message)s"}},
    …
}
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Any

from django.utils.decorators import sync_and_async_middleware

from consumer.middleware.chain import Call, Consume, messages_of

_NOTHING = {"mq_group": "", "mq_topic": "", "mq_message_id": "", "mq_reconsume_times": 0, "mq_messages": 0}
_fields: ContextVar[dict[str, Any]] = ContextVar("fields of the message that is consumed", default=_NOTHING)


class MessageFields(logging.Filter):
    """Adds `mq_group`, `mq_topic`, `mq_message_id`, `mq_reconsume_times` and `mq_messages` to each record.

    Outside of a listener they are empty or 0. Of a batch they are those of its first message; `mq_messages` counts it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        vars(record).update(_fields.get())
        return True


@sync_and_async_middleware
def logging_context(consume: Consume) -> Call:
    def fields(argument: Any) -> dict[str, Any]:
        messages = messages_of(argument)
        return {
            "mq_group": consume.listener.group,
            "mq_topic": consume.listener.topic,
            "mq_message_id": messages[0].id,
            "mq_reconsume_times": messages[0].reconsume_times,
            "mq_messages": len(messages),
        }

    def middleware(message: Any) -> Any:
        token = _fields.set(fields(message))
        try:
            return consume(message)
        finally:
            _fields.reset(token)

    async def async_middleware(message: Any) -> Any:
        token = _fields.set(fields(message))
        try:
            return await consume(message)
        finally:
            _fields.reset(token)

    return async_middleware if consume.is_async else middleware
