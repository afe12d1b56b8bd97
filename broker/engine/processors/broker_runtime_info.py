"""GET_BROKER_RUNTIME_INFO (28): figures of the whole broker, all as text (a part of what RocketMQ tells)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from broker.engine.requests import Request
from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response

# What we call ourselves: the RocketMQ release whose protocol we speak.
VERSION_NAME = "V5_3_3"


class BrokerRuntimeInfo:
    """`clock`: ms since the epoch."""

    def __init__(self, store: MessageStore, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._boot_ms = clock()

    def __call__(self, request: Request) -> Command:
        table = {
            "brokerVersionDesc": VERSION_NAME,
            "brokerActive": "true",
            "bootTimestamp": str(self._boot_ms),
            "runtime": _duration(self._clock() - self._boot_ms),
            "commitLogMinOffset": str(self._store.min_commit_log_offset),
            "commitLogMaxOffset": str(self._store.max_commit_log_offset),
            "remainHowManyDataToFlush": f"{self._unflushed_bytes()} B",
            "dispatchBehindBytes": "0",
        }
        return response(request.command, ResponseCode.SUCCESS, body=msgspec.json.encode({"table": table}))

    def _unflushed_bytes(self) -> int:
        return self._store.max_commit_log_offset - self._store.flushed_commit_log_offset


def _duration(ms: int) -> str:
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
