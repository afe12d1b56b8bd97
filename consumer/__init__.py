"""The consumer runtime: a Django app around an engine (docs/ARCHITECTURE.md, "The rooms").

    from consumer import Later, Message, listener, producer

`consumer.producer` is a module of its own, imported when it is asked for: it needs Django's settings.
"""

from __future__ import annotations

from consumer.engine.listening import Later
from consumer.engine.message import Message
from consumer.listener import listener

__all__ = ["Later", "Message", "listener"]
