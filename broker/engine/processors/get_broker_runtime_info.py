"""GET_BROKER_RUNTIME_INFO (28): figures of the whole broker, all as text (`AdminBrokerProcessor.prepareRuntimeInfo`).

Apache's figures of its thread pools are 0 here: there is one thread, and requests wait for it in their connections.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import msgspec

from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.timer import TimerDelivery
from broker.engine.serving.requests import Request
from broker.engine.stats import RANGE_NAMES, BrokerStats, DailyTotals, Durations, Rates
from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.names import SCHEDULE_TOPIC, TIMER_TOPIC

# What we call ourselves: the RocketMQ release whose protocol we speak.
VERSION_NAME = "V5_3_3"
_POOLS = ("send", "pull", "litePull", "query", "ack")
# Windows of `putTps` and its like.
_RATE_WINDOWS_S = (10, 60, 600)
_JAVA_INT_MAX = 2**31 - 1
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class GetBrokerRuntimeInfo:
    """`clock`: ms since the epoch."""

    def __init__(
        self,
        *,
        store: MessageStore,
        stats: BrokerStats,
        delays: DelayedDelivery,
        timers: TimerDelivery,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._stats = stats
        self._delays = delays
        self._timers = timers
        self._clock = clock
        self._boot_ms = clock()

    def __call__(self, request: Request) -> Command:
        table = self._own() | self._waiting() | self._log() | self._traffic() | _pools()
        return response(request.command, ResponseCode.SUCCESS, body=msgspec.json.encode({"table": table}))

    def _own(self) -> dict[str, str]:
        return {
            "brokerVersionDesc": VERSION_NAME,
            "brokerActive": "true",
            "bootTimestamp": str(self._boot_ms),
            "runtime": _duration(self._clock() - self._boot_ms),
            "startAcceptSendRequestTimeStamp": "0",
        }

    def _waiting(self) -> dict[str, str]:
        """Returns the figures of messages that wait for their time. Timers are entered when they are stored."""
        offsets = sorted(self._delays.next_offsets.items())
        return {
            "timerReadBehind": "0",
            "timerOffsetBehind": "0",
            "timerCongestNum": str(self._timers.waiting_count),
            "timerEnqueueTps": str(self._stats.put.per_second(TIMER_TOPIC)),
            "timerDequeueTps": str(self._stats.timers_delivered.per_second(None)),
            **{
                f"scheduleMessageOffset_{level}": f"{offset},{self._store.max_offset(SCHEDULE_TOPIC, level - 1)}"
                for level, offset in offsets
            },
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
            f"commitLogDiskRatio_{store.path / 'commitlog'}": ratio,
            "consumeQueueDiskRatio": ratio,
            "earliestMessageTimeStamp": str(store.earliest_timestamp_ms),
            "remainHowManyDataToFlush": _bytes(unflushed_bytes),
            # Indexes are written with the log.
            "dispatchBehindBytes": "0",
            "dispatchMaxBuffer": "0",
            # Java's largest number, where there is no pool of buffers.
            "remainTransientStoreBufferNumbs": str(_JAVA_INT_MAX),
            "pageCacheLockTimeMills": "0",
        }

    def _traffic(self) -> dict[str, str]:
        stats = self._stats
        put, failed = stats.put.total, stats.put_failures
        return {
            "putTps": _rates(stats.put),
            "getTransferredTps": _rates(stats.got),
            "getFoundTps": _rates(stats.found),
            "getMissTps": _rates(stats.missed),
            "getTotalTps": _rates(stats.found, stats.missed),
            "getMessageEntireTimeMax": f"{stats.get_times.max_ms:.0f}",
            # Tools divide by it.
            "putMessageTimesTotal": str(max(put, 1)),
            "putMessageFailedTimes": str(failed),
            "putMessageSizeTotal": str(stats.put_bytes),
            "putMessageAverageSize": str(stats.put_bytes / max(put, 1)),
            "putMessageEntireTimeMax": f"{stats.put_times.max_ms:.0f}",
            "putMessageDistributeTime": _ranges(stats.put_times),
            "putLatency99": f"{stats.put_times.percentile_ms(0.99):.2f}",
            "putLatency999": f"{stats.put_times.percentile_ms(0.999):.2f}",
            **_days("Put", stats.put_daily),
            **_days("Get", stats.got_daily),
        }


def _pools() -> dict[str, str]:
    names = [f"{pool}ThreadPoolQueue" for pool in _POOLS]
    figures = {f"{name}{what}": "0" for name in names for what in ("Size", "Capacity", "HeadWaitTimeMills")}
    return figures | {"EndTransactionQueueSize": "0", "EndTransactionThreadPoolQueueCapacity": "0"}


def _rates(*rates: Rates[Any]) -> str:
    """Writes the rates per second over the last 10 s, minute and ten minutes, as RocketMQ's `StoreStatsService`."""
    return " ".join([str(sum(one.recent_per_second(seconds) for one in rates)) for seconds in _RATE_WINDOWS_S])


def _ranges(durations: Durations) -> str:
    return "".join([f"[{name}]:{count} " for name, count in zip(RANGE_NAMES, durations.ranges, strict=True)])


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
