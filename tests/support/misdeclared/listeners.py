"""A group cannot be ordered and broadcasting at once, and no topic has such a name."""

from __future__ import annotations

from consumer import Message, listener


@listener(group="billing", topic="or ders", orderly=True)
def bill(message: Message) -> None: ...
