"""A broker's runtime info (28) as the series of RocketMQ's exporter: which key makes which, and how its text is read.

Names are the exporter's, with its spelling. A key that a broker doesn't have, or whose text is no number, makes none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

_UNITS = {"B": 0, "KIB": 1, "MIB": 2, "GIB": 3, "TIB": 4, "PIB": 5, "EIB": 6, "K": 1, "M": 2, "G": 3, "T": 4}
_BYTES = re.compile(r"([\d.]+)\s*([A-Za-z]+)")
_CAPACITY = re.compile(r"(Total|Free)\s*:\s*([\d.]+\s*[A-Za-z]+)")
_COUNT_BY_TIME = re.compile(r"\[([^\]]+)\]\s*:\s*(\d+)")

# Series → key, of keys that hold one number.
NUMBERS = {
    "msg_put_total_today_now": "msgPutTotalTodayNow",
    "msg_gettotal_today_now": "msgGetTotalTodayNow",
    "msg_puttotal_todaymorning": "msgPutTotalTodayMorning",
    "msg_gettotal_todaymorning": "msgGetTotalTodayMorning",
    "msg_puttotal_yesterdaymorning": "msgPutTotalYesterdayMorning",
    "msg_gettotal_yesterdaymorning": "msgGetTotalYesterdayMorning",
    "dispatch_behind_bytes": "dispatchBehindBytes",
    "dispatch_maxbuffer": "dispatchMaxBuffer",
    "put_message_size_total": "putMessageSizeTotal",
    "put_message_average_size": "putMessageAverageSize",
    "putmessage_times_total": "putMessageTimesTotal",
    "putmessage_entire_time_max": "putMessageEntireTimeMax",
    "getmessage_entire_time_max": "getMessageEntireTimeMax",
    "earliest_message_timestamp": "earliestMessageTimeStamp",
    "start_accept_sendrequest_time": "startAcceptSendRequestTimeStamp",
    "pagecache_lock_time_mills": "pageCacheLockTimeMills",
    "commitlog_disk_ratio": "commitLogDiskRatio",
    "consumequeue_disk_ratio": "consumeQueueDiskRatio",
    "commitlog_maxoffset": "commitLogMaxOffset",
    "commitlog_minoffset": "commitLogMinOffset",
    "remain_transientstore_buffer_numbs": "remainTransientStoreBufferNumbs",
    "put_latency_99": "putLatency99",
    "put_latency_999": "putLatency999",
    "query_threadpool_queue_capacity": "queryThreadPoolQueueCapacity",
    "pull_threadpoolqueue_capacity": "pullThreadPoolQueueCapacity",
    "send_threadpoolqueue_capacity": "sendThreadPoolQueueCapacity",
    "send_threadpool_queue_size": "sendThreadPoolQueueSize",
    "pull_threadpoolqueue_size": "pullThreadPoolQueueSize",
    "query_threadpoolqueue_size": "queryThreadPoolQueueSize",
    "pull_threadpoolqueue_headwait_timemills": "pullThreadPoolQueueHeadWaitTimeMills",
    "query_threadpoolqueue_headwait_timemills": "queryThreadPoolQueueHeadWaitTimeMills",
    "send_threadpoolqueue_headwait_timemills": "sendThreadPoolQueueHeadWaitTimeMills",
}
# Series → key, of keys that hold three rates: over 10, 60 and 600 s.
RATES = {
    "getfound_tps": "getFoundTps",
    "gettotal_tps": "getTotalTps",
    "gettransfered_tps": "getTransferredTps",
    "getmiss_tps": "getMissTps",
    "put_tps": "putTps",
}
# Apache's word in putMessageDistributeTime → the end of the series' name.
_TIMES = {
    "<=0ms": "0ms",
    "0~10ms": "0to10ms",
    "10~50ms": "10to50ms",
    "50~100ms": "50to100ms",
    "100~200ms": "100to200ms",
    "200~500ms": "200to500ms",
    "500ms~1s": "500to1s",
    "1~2s": "1to2s",
    "2~3s": "2to3s",
    "3~4s": "3to4s",
    "4~5s": "4to5s",
    "5~10s": "5to10s",
    "10s~": "10stomore",
}


def series_of(figures: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Yields (name without the prefix rocketmq_brokeruntime_, value)."""
    for name, key in NUMBERS.items():
        yield from _one(name, figures.get(key), float)
    for name, key in RATES.items():
        for window, text in zip((10, 60, 600), figures.get(key, "").split(), strict=False):
            yield from _one(f"{name}{window}", text, float)
    for word, text in _CAPACITY.findall(figures.get("commitLogDirCapacity", "")):
        yield from _one(f"commitlogdir_capacity_{word.lower()}", text, _bytes)
    yield from _one("remain_howmanydata_toflush", figures.get("remainHowManyDataToFlush"), _bytes)
    for word, count in _COUNT_BY_TIME.findall(figures.get("putMessageDistributeTime", "")):
        if word in _TIMES:
            yield f"pmdt_{_TIMES[word]}", float(count)


def _one(name: str, text: str | None, read: Callable[[str], float]) -> Iterator[tuple[str, float]]:
    try:
        if text is not None:
            yield name, read(text)
    except ValueError:
        pass


def _bytes(text: str) -> float:
    """Reads "1.5 GiB". Raises ValueError."""
    found = _BYTES.fullmatch(text.strip())
    if found is None or found[2].upper() not in _UNITS:
        raise ValueError(text)
    factor: int = 1024 ** _UNITS[found[2].upper()]
    return float(found[1]) * factor
