"""Counts and progress of a whole broker."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from broker.engine.processors import get_broker_consume_stats as broker_consume_stats
from broker.engine.processors.get_broker_consume_stats import GetBrokerConsumeStats
from broker.engine.processors.get_broker_runtime_info import GetBrokerRuntimeInfo
from broker.engine.processors.get_consume_stats import GetConsumeStats
from broker.engine.processors.view_broker_stats_data import ViewBrokerStatsData
from broker.engine.schedule.delay import DelayedDelivery
from broker.engine.schedule.progress import ProgressFile
from broker.engine.schedule.timer import TimerDelivery
from broker.engine.stats import BrokerStats, Rates
from remoting.wire import lenient_json
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.broker_parts import BrokerParts, save_topic
from tests.support.stores import START_MS, ManualClock, draft

# What a broker of Apache RocketMQ 5.4.0 tells (28), less those that stand once per pool, path or level.
APACHES_RUNTIME_KEYS = frozenset(
    {
        "EndTransactionQueueSize",
        "EndTransactionThreadPoolQueueCapacity",
        "bootTimestamp",
        "brokerActive",
        "brokerVersionDesc",
        "commitLogDirCapacity",
        "commitLogDiskRatio",
        "commitLogMaxOffset",
        "commitLogMinOffset",
        "consumeQueueDiskRatio",
        "dispatchBehindBytes",
        "dispatchMaxBuffer",
        "earliestMessageTimeStamp",
        "getFoundTps",
        "getMessageEntireTimeMax",
        "getMissTps",
        "getTotalTps",
        "getTransferredTps",
        "msgGetTotalTodayMorning",
        "msgGetTotalTodayNow",
        "msgGetTotalYesterdayMorning",
        "msgPutTotalTodayMorning",
        "msgPutTotalTodayNow",
        "msgPutTotalYesterdayMorning",
        "pageCacheLockTimeMills",
        "putLatency99",
        "putLatency999",
        "putMessageAverageSize",
        "putMessageDistributeTime",
        "putMessageEntireTimeMax",
        "putMessageFailedTimes",
        "putMessageSizeTotal",
        "putMessageTimesTotal",
        "putTps",
        "remainHowManyDataToFlush",
        "remainTransientStoreBufferNumbs",
        "runtime",
        "startAcceptSendRequestTimeStamp",
        "timerCongestNum",
        "timerDequeueTps",
        "timerEnqueueTps",
        "timerOffsetBehind",
        "timerReadBehind",
        "ackThreadPoolQueueCapacity",
        "litePullThreadPoolQueueSize",
        "pullThreadPoolQueueHeadWaitTimeMills",
        "queryThreadPoolQueueSize",
        "sendThreadPoolQueueHeadWaitTimeMills",
    }
)


@pytest.fixture
async def parts(tmp_path: Path):
    parts = BrokerParts(tmp_path / "store")
    yield parts
    parts.close()


@pytest.fixture
def put() -> Rates[str]:
    rates: Rates[str] = Rates(lambda: 1_000.0)
    rates.count("orders", 3)
    rates.count("refunds", 4)
    return rates


def stats(parts: BrokerParts, put: Rates[str], name: str, key: str) -> Command:
    got: Rates[tuple[str, str]] = Rates(lambda: 1_000.0)
    got.count(("orders", "billing"), 2)
    command = Command(code=RequestCode.VIEW_BROKER_STATS_DATA, ext_fields={"statsName": name, "statsKey": key})
    return parts.ask(ViewBrokerStatsData(put, got, "local"), command)


@pytest.mark.parametrize(
    ("name", "key", "number"),
    [
        ("TOPIC_PUT_NUMS", "orders", 3),
        ("GROUP_GET_NUMS", "orders@billing", 2),
        ("BROKER_PUT_NUMS", "local", 7),
        ("BROKER_GET_NUMS", "local", 2),
    ],
)
def test_messages_are_counted_by(parts, put, name, key, number) -> None:
    body = json.loads(stats(parts, put, name, key).body)
    item = {"avgpt": 1.0, "sum": number, "tps": float(number)}
    assert body == {"statsDay": item, "statsHour": item, "statsMinute": item}


@pytest.mark.parametrize(("name", "key"), [("TOPIC_PUT_NUMS", "missing"), ("TOPIC_PUT_SIZE", "orders")])
def test_what_is_not_counted_does_not_exist(parts, put, name, key) -> None:
    answer = stats(parts, put, name, key)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")


# progress of all groups


def progress(parts: BrokerParts, **fields: str) -> Command:
    of_group = GetConsumeStats(
        topics=parts.topics,
        members=parts.members,
        offsets=parts.offsets,
        store=parts.store,
        got=parts.stats.got,
        broker_name="broker-a",
    )
    processor = GetBrokerConsumeStats(parts.topics, parts.groups, of_group, "10.1.2.3:10911")
    return parts.ask(processor, Command(code=RequestCode.GET_BROKER_CONSUME_STATS, ext_fields=fields))


def read_topic(parts: BrokerParts, topic: str, *, order: bool = False) -> None:
    save_topic(parts.topics, TopicConfig(topic_name=topic, read_queue_nums=1, order=order))
    for _ in range(5):
        parts.store.append(draft(topic=topic))
    parts.groups.find("billing")
    parts.offsets.pulled("billing", topic, 0, 4)
    parts.offsets.commit("billing", topic, 0, 2)


def test_every_groups_progress_is_told_with_its_sums(parts) -> None:
    read_topic(parts, "orders")
    read_topic(parts, "refunds")
    body = lenient_json.loads(progress(parts).body)
    of_group = {name: topics for one in body["consumeStatsList"] for name, topics in one.items()}
    assert len(of_group["billing"]) == 2
    assert of_group["TOOLS_CONSUMER"] == []
    assert (body["brokerAddr"], body["totalDiff"], body["totalInflightDiff"]) == ("10.1.2.3:10911", 6, 4)


def test_only_ordered_topics_are_told_where_that_is_asked_for(parts) -> None:
    read_topic(parts, "orders")
    read_topic(parts, "steps", order=True)
    assert lenient_json.loads(progress(parts, isOrder="true").body)["totalDiff"] == 3


def test_progress_of_too_many_queues_is_refused(parts, monkeypatch) -> None:
    monkeypatch.setattr(broker_consume_stats, "QUEUES_MAX", 1)
    read_topic(parts, "orders")
    read_topic(parts, "refunds")
    answer = progress(parts)
    assert (answer.code, "208" in answer.remark) == (ResponseCode.SYSTEM_ERROR, True)


# runtime


async def test_the_brokers_figures_are_told_under_rocketmqs_names(parts, tmp_path: Path) -> None:
    seconds = ManualClock(1_000_000)
    stats = BrokerStats(parts.clock, lambda: seconds() / 1000)
    stats.appended([parts.store.append(draft(topic="orders")) for _ in range(7)])
    stats.put_times.add(0.0001, 6)
    stats.put_times.add(0.06)
    stats.got.count(("orders", "billing"), 14)
    stats.found.count(None, 2)
    stats.missed.count(None, 4)
    seconds.now_ms += 20_000
    progress_file = ProgressFile(parts.config.config_dir / "delayOffset.json")
    delays = DelayedDelivery(parts.store, parts.levels, progress_file, lambda: None, parts.clock)
    timers = TimerDelivery(parts.store, parts.config.store, lambda: None, parts.clock)
    delays.recover()
    timers.recover()
    processor = GetBrokerRuntimeInfo(store=parts.store, stats=stats, delays=delays, timers=timers, clock=parts.clock)
    parts.clock.now_ms += 3_661_000

    table = json.loads(parts.ask(processor, Command(code=RequestCode.GET_BROKER_RUNTIME_INFO)).body)["table"]

    assert table["runtime"] == "[ 0 days, 1 hours, 1 minutes, 1 seconds ]"
    assert table["earliestMessageTimeStamp"] == str(START_MS)
    assert table["commitLogMaxOffset"] == str(parts.store.max_commit_log_offset)
    assert (table["msgPutTotalTodayNow"], table["msgPutTotalTodayMorning"]) == ("7", "0")
    assert [float(rate) for rate in table["putTps"].split()] == [0.0, 0.35, 0.35], "of 10 s, a minute, ten minutes"
    rates = [float(table[f"get{what}Tps"].split()[1]) for what in ("Found", "Miss", "Total", "Transferred")]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.7])
    assert int(table["putMessageSizeTotal"]) == 7 * float(table["putMessageAverageSize"]) > 700
    assert table["putMessageDistributeTime"].startswith("[<=0ms]:6 [0~10ms]:0 [10~50ms]:0 [50~100ms]:1 ")
    assert (float(table["putLatency99"]), table["putMessageEntireTimeMax"]) == (60.0, "60")
    assert table["timerCongestNum"] == "0"
    disk = shutil.disk_usage(tmp_path)
    assert float(table["commitLogDiskRatio"]) == pytest.approx(disk.used / disk.total, abs=0.02)
    assert table["commitLogDirCapacity"].startswith("Total : ")
    assert set(map(type, table.values())) == {str}
    assert table.keys() >= APACHES_RUNTIME_KEYS
    await timers.stop()
    await delays.stop()
