"""The consumer runtime: a Django app around an engine (docs/ARCHITECTURE.md, "The rooms").

    from consumer import DeadLetter, Later, Message, listener, producer

`consumer.producer` and `consumer.task_listener` are modules of their own, imported when they are asked for: they need
Django's settings, or Celery.
"""

from __future__ import annotations

from consumer.engine.breaker import Breaker
from consumer.engine.message import Message
from consumer.engine.outcomes import DeadLetter, Later
from consumer.listener import listener

__all__ = ["Breaker", "DeadLetter", "Later", "Message", "listener"]
