"""Closes old and broken database connections around each message, as Django does around each request.

A plain listener runs in one thread, whose connections are looked at after each call, and before one that does not
follow upon another: looking twice cost a tenth of all that the runtime does for a message. An async one reaches the ORM
in asgiref's thread; going there costs more than most listeners, so it is looked at once a second, and always after an
error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils.decorators import sync_and_async_middleware

from consumer.middleware.chain import Call, Consume

# For so long a look holds.
INTERVAL_S = 1.0


@sync_and_async_middleware
def database_connections(consume: Consume) -> Call:
    return _around_async(consume) if consume.is_async else _around_sync(consume)


def _around_sync(consume: Consume, clock_s: Callable[[], float] = time.monotonic) -> Call:
    looked = threading.local()

    def middleware(message: Any) -> Any:
        if clock_s() - getattr(looked, "at_s", float("-inf")) >= INTERVAL_S:
            close_old_connections()
        try:
            return consume(message)
        finally:
            close_old_connections()
            looked.at_s = clock_s()

    return middleware


def _around_async(consume: Consume, clock_s: Callable[[], float] = time.monotonic) -> Call:
    looked_s = float("-inf")

    async def middleware(message: Any) -> Any:
        nonlocal looked_s
        now_s = clock_s()
        if now_s - looked_s >= INTERVAL_S:
            looked_s = now_s
            await sync_to_async(close_old_connections)()
        try:
            return await consume(message)
        except Exception:
            await sync_to_async(close_old_connections)()
            raise

    return middleware
