"""GET_BROKER_RUNTIME_INFO (28): figures of the whole broker, all as text (`AdminBrokerProcessor.prepareRuntimeInfo`).

Apache's figures of its thread pools are 0 here: there is one thread, and requests wait for it in their connections.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import msgspec

from broker.engine.serving.requests import Request
from broker.engine.stats import BrokerStats, DailyTotals, Rates, Window
from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response

# What we call ourselves: the RocketMQ release whose protocol we speak.
VERSION_NAME = "V5_3_3"
_POOLS = ("send", "pull", "litePull", "query", "ack")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class GetBrokerRuntimeInfo:
    """`waiting_count()`: delayed and timer messages that wait for their time. `clock`: ms since the epoch."""

    def __init__(
        self,
        *,
        store: MessageStore,
        stats: BrokerStats,
        waiting_count: Callable[[], int],
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._stats = stats
        self._waiting_count = waiting_count
        self._clock = clock
        self._boot_ms = clock()

    def __call__(self, request: Request) -> Command:
        table = self._own() | self._log() | self._traffic() | _pools()
        return response(request.command, ResponseCode.SUCCESS, body=msgspec.json.encode({"table": table}))

    def _own(self) -> dict[str, str]:
        return {
            "brokerVersionDesc": VERSION_NAME,
            "brokerActive": "true",
            "bootTimestamp": str(self._boot_ms),
            "runtime": _duration(self._clock() - self._boot_ms),
            "startAcceptSendRequestTimeStamp": "0",
            "timerReadBehind": "0",
            "timerOffsetBehind": "0",
            "timerCongestNum": str(self._waiting_count()),
            "timerEnqueueTps": "0.0",
            "timerDequeueTps": "0.0",
        }

    def _log(self) -> dict[str, str]:
        """Returns the figures of the log and of the disk; these are those of the partition that holds the store."""
        store, disk = self._store, shutil.disk_usage(self._store.path)
        ratio = f"{disk.used / disk.total:.2f}"
        first = store.min_commit_log_offset
        unflushed_bytes = store.max_commit_log_offset - store.flushed_commit_log_offset
        return {
            "commitLogMinOffset": str(first),
            "commitLogMaxOffset": str(store.max_commit_log_offset),
            "commitLogDirCapacity": f"Total : {_bytes(disk.total)}, Free : {_bytes(disk.free)}.",
            "commitLogDiskRatio": ratio,
            "consumeQueueDiskRatio": ratio,
            "earliestMessageTimeStamp": str(store.earliest_timestamp_ms),
            "remainHowManyDataToFlush": _bytes(unflushed_bytes),
            "dispatchBehindBytes": "0",
            "pageCacheLockTimeMills": "0",
        }

    def _traffic(self) -> dict[str, str]:
        put, got = self._stats.put, self._stats.got
        return {
            "putTps": _rates(put),
            "getTransferredTps": _rates(got),
            "getFoundTps": _rates(got),
            "getTotalTps": _rates(got),
            "getMissTps": "0.0 0.0 0.0",
            "putMessageTimesTotal": str(put.total),
            **_days("Put", self._stats.put_daily),
            **_days("Get", self._stats.got_daily),
        }


def _pools() -> dict[str, str]:
    names = [f"{pool}ThreadPoolQueue" for pool in _POOLS]
    return {f"{name}{what}": "0" for name in names for what in ("Size", "Capacity", "HeadWaitTimeMills")}


def _rates(rates: Rates[Any]) -> str:
    """Writes the rates per second over the last minute, hour and day."""
    return " ".join([str(rates.all_per_second(window)) for window in Window])


def _days(verb: str, totals: DailyTotals) -> dict[str, str]:
    return {
        f"msg{verb}TotalYesterdayMorning": str(totals.total_at_yesterday_midnight),
        f"msg{verb}TotalTodayMorning": str(totals.total_at_midnight),
        f"msg{verb}TotalTodayNow": str(totals.total_now),
    }


def _bytes(number: int) -> str:
    """Writes a size as `MixAll.humanReadableByteCount` does: 999 B, 1.5 GiB."""
    if number < 1024:
        return f"{number} B"
    size, unit = float(number), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:.1f} {_UNITS[unit]}"


def _duration(ms: int) -> str:
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
