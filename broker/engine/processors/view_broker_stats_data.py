"""VIEW_BROKER_STATS_DATA (315): messages of the last minute, hour and day (RocketMQ's `BrokerStatsManager`).

Kept are the numbers of messages per topic and per topic and group; sums of bytes and latencies are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.engine.serving.requests import Request
from broker.engine.stats import Rates, Window
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.statistics import BrokerStats, StatsItem
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.statistics import BrokerStatsHeader
from remoting.wire.headers.typed import read_header

# The statistics of one name: whose counts, and how many of them belong to a key in a window.
_Counted = tuple[Rates[Any], Callable[[str, Window], int]]


class ViewBrokerStatsData:
    """`put` by topic, `got` by (topic, group)."""

    def __init__(self, put: Rates[str], got: Rates[tuple[str, str]], cluster: str) -> None:
        self._cluster = cluster
        self._names: dict[str, _Counted] = {
            "TOPIC_PUT_NUMS": (put, put.sum_of),
            "GROUP_GET_NUMS": (got, lambda key, window: got.sum_of(_topic_and_group(key), window)),
            "BROKER_PUT_NUMS": (put, lambda key, window: self._of_cluster(put, key, window)),
            "BROKER_GET_NUMS": (got, lambda key, window: self._of_cluster(got, key, window)),
        }

    def __call__(self, request: Request) -> Command:
        """Raises MessageError where nothing was counted for a day."""
        header = read_header(BrokerStatsHeader, request.command.ext_fields)
        counted = self._names.get(header.stats_name)
        if counted is None or not counted[1](header.stats_key, Window.DAY):
            text = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
            raise MessageError(text, ResponseCode.SYSTEM_ERROR)
        body = BrokerStats(
            stats_day=_item(counted, header.stats_key, Window.DAY),
            stats_hour=_item(counted, header.stats_key, Window.HOUR),
            stats_minute=_item(counted, header.stats_key, Window.MINUTE),
        )
        return response(request.command, ResponseCode.SUCCESS, body=write_body(body))

    def _of_cluster(self, rates: Rates[Any], key: str, window: Window) -> int:
        return rates.sum_of_all(window) if key == self._cluster else 0


def _item(counted: _Counted, key: str, window: Window) -> StatsItem:
    rates, sum_of = counted
    number = sum_of(key, window)
    return StatsItem(avgpt=1.0 if number else 0.0, sum=number, tps=rates.rate_of(number, window))


def _topic_and_group(key: str) -> tuple[str, str]:
    topic, _, group = key.partition("@")
    return topic, group
