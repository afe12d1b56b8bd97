"""One line per finished message, in the file NOTED: its queue and queue offset. Each message takes NOTING_TAKES_S."""

from __future__ import annotations

import asyncio
import os

from consumer import Message, listener


@listener(group="noting", topic="orders", wanted_instances=2, consume_from="first")
async def note(message: Message) -> None:
    await asyncio.sleep(float(os.environ["NOTING_TAKES_S"]))
    assert message.queue is not None
    descriptor = os.open(os.environ["NOTED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{message.queue.queue_id}:{message.queue_offset}\n".encode())
    finally:
        os.close(descriptor)
