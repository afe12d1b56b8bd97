"""One broker itself: how it runs, its settings, its statistics, its clean-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from remoting.client.admin.requests import Requests, read_aside
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.kv_config import read_kv_table
from remoting.wire.bodies.properties import read_settings, write_changes
from remoting.wire.bodies.route import TopicList
from remoting.wire.bodies.statistics import BrokerConsumeStats, BrokerStats, read_broker_consume_stats
from remoting.wire.bodies.topics import DataVersion
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.statistics import BrokerConsumeStatsHeader, BrokerStatsHeader

# Of 315: how Apache says that nothing was counted yet.
_NOTHING_COUNTED = "not exist"


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """`settings` by name; `version` counts their changes, None where the broker doesn't say.

    `broker_version` is the number of the broker's own version (`remoting.wire.versions`).
    """

    settings: dict[str, str]
    version: DataVersion | None
    broker_version: int


class Brokers:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def runtime_info(self, address: str) -> dict[str, str]:
        """Returns what the broker tells of its run, by Apache's names (28); which there are depends on its version."""
        answer = await self._requests.ask(address, RequestCode.GET_BROKER_RUNTIME_INFO)
        return read_kv_table(answer.body)

    async def config(self, address: str) -> BrokerConfig:
        """Returns the broker's settings (26)."""
        answer = await self._requests.ask(address, RequestCode.GET_BROKER_CONFIG)
        version = answer.ext_fields.get("version")
        return BrokerConfig(
            read_settings(answer.body),
            read_body(DataVersion, version.encode()) if version is not None else None,
            answer.version,
        )

    async def update_config(self, address: str, changes: Mapping[str, str]) -> None:
        """Changes settings (25). Names that the broker doesn't have are ignored by Apache's: read the settings again.

        Raises BrokerRefused (NO_PERMISSION) for a setting that must not change while it runs.
        """
        await self._requests.ask(address, RequestCode.UPDATE_BROKER_CONFIG, body=write_changes(changes))

    async def stats(self, address: str, name: str, key: str) -> BrokerStats | None:
        """Returns counts of the last minute, hour and day (315), e.g. "TOPIC_PUT_NUMS" of a topic.

        `key` is a topic, "topic@group" or the cluster's name, depending on `name`. None where nothing was counted yet.
        """
        header, code = BrokerStatsHeader(stats_name=name, stats_key=key), RequestCode.VIEW_BROKER_STATS_DATA
        try:
            answer = await self._requests.ask(address, code, header, about=f"{name} of {key!r}")
        except BrokerRefused as error:
            if error.code == ResponseCode.SYSTEM_ERROR and _NOTHING_COUNTED in error.remark:
                return None
            raise
        return read_body(BrokerStats, answer.body)

    async def consume_stats(self, address: str, *, orderly_only: bool = False) -> BrokerConsumeStats:
        """Returns the progress of every group of the broker, in one answer (317)."""
        header = BrokerConsumeStatsHeader(is_order=orderly_only)
        answer = await self._requests.ask(address, RequestCode.GET_BROKER_CONSUME_STATS, header)
        return await read_aside(read_broker_consume_stats, answer.body)

    async def system_topics(self, address: str) -> list[str]:
        """Returns the topics that the broker keeps for itself (305)."""
        answer = await self._requests.ask(address, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
        return read_body(TopicList, answer.body).topic_list

    # clean-ups

    async def clean_expired_consume_queues(self, address: str) -> None:
        """Deletes what consume queues still hold of messages that are gone (306)."""
        await self._requests.ask(address, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)

    async def clean_unused_topics(self, address: str) -> None:
        """Deletes the queues of topics that the broker doesn't have any more (316)."""
        await self._requests.ask(address, RequestCode.CLEAN_UNUSED_TOPIC)

    async def delete_expired_commit_log(self, address: str) -> None:
        """Deletes the segments that are older than the broker keeps messages, now instead of at its hour (329)."""
        await self._requests.ask(address, RequestCode.DELETE_EXPIRED_COMMITLOG)
