"""What RocketMQ Dashboard's pages ask a cluster, through Apache's admin library: answered as Apache's broker answers.

The calls that change something, look messages up, or reach members are compared in files of their own
(`test_tools_write.py`, `test_contract_lookups.py`, `test_contract_requests_to_clients.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.contract import ScenarioRun, compares
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Seen = Callable[[], Any]
SENT = ("first", "second", "third")
# Moments, rates and versions of tables: no two runs share them.
_VOLATILE = {
    "timestamp",
    "counter",
    "lastUpdateTimestamp",
    "lastTimestamp",
    "subVersion",
    "consumeTps",
    "tps",
    "avgpt",
    "consumeTimeStamp",
    "consumeTimeStampStr",
    "maxTimeStamp",
    "maxTimeStampStr",
    "minTimeStamp",
    "minTimeStampStr",
}
# Dashboard's charts and its table of brokers fail without these (its `DashboardCollectTask` and cluster page).
CHARTED = {
    "brokerVersionDesc",
    "getTotalTps",
    "putTps",
    "getTransferredTps",
    "msgPutTotalTodayNow",
    "msgPutTotalTodayMorning",
    "msgPutTotalYesterdayMorning",
    "msgGetTotalTodayNow",
    "msgGetTotalTodayMorning",
    "msgGetTotalYesterdayMorning",
}


def without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: type(each).__name__ if key in _VOLATILE else without_volatile(each) for key, each in value.items()}
    return [without_volatile(each) for each in value] if isinstance(value, list) else value


class Shop:
    """A topic of two queues with three messages, a group with one member that has consumed and committed them."""

    def __init__(self, run: ScenarioRun) -> None:
        self._run = run
        self.topic, self.group = run.topic(queues=2), run.group()
        retries = f"%RETRY%{self.group}"
        producer, reader = run.producer(), run.consumer(self.group, self.topic)
        self.producers = run.shared("producer-group")
        run.wait_for_queues(reader, self.topic, 2)
        for number, word in enumerate(SENT):
            run.java.send(producer, self.topic, body=word, queue=number % 2)
        run.java.wait_consumed(len(SENT), reader)
        committed = lambda: sum(run.committed(self.group, self.topic).values()) == len(SENT)  # noqa: E731
        wait_until(committed, what="the commits")
        run.wait_for_queues(reader, retries)
        wait_until(lambda: {self.topic, retries} <= set(self._topics_of_reader()), what="the commit of the retry queue")

    def _topics_of_reader(self) -> Any:
        return self._run.java.admin_call("queryTopicsByConsumer", self.group)["topicList"]

    def ask(self, method: str, *arguments: Any) -> Any:
        answer = self._run.refusal(lambda: self._run.java.admin_call(method, *arguments))
        return without_volatile(self._run.normalized(answer))


def cluster_pages(run: ScenarioRun) -> Any:
    shop = Shop(run)
    runtime = run.java.admin_call("fetchBrokerRuntimeStats", run.broker)["table"]

    def is_counted() -> bool:
        """Apache's broker counts every 10 s, and perhaps between two sends."""
        current = shop.ask("viewBrokerStatsData", run.broker, "TOPIC_PUT_NUMS", shop.topic)
        return "statsMinute" in current and current["statsMinute"]["sum"] == len(SENT)

    return {
        "clusters": shop.ask("examineBrokerClusterInfo"),
        "of a topic": shop.ask("getTopicClusterList", shop.topic),
        "charted": sorted(CHARTED & runtime.keys()),
        "rates of three spans": len(runtime["getTotalTps"].split()),
        "all of the last minute are counted": wait_until(is_counted, what="the count of the last minute"),
        "its settings name it": run.java.admin_call("getBrokerConfig", run.broker)["brokerName"],
    }


@compares(cluster_pages, "5.4.0")
def test_the_pages_of_clusters_and_brokers(seen: Seen) -> None:
    observed = seen()
    assert observed["charted"] == sorted(CHARTED)
    assert observed["rates of three spans"] == 3


def topic_pages(run: ScenarioRun) -> Any:
    shop = Shop(run)
    config = run.java.admin_call("getAllTopicConfig", run.broker, 10_000)["topicConfigTable"]

    def producers() -> Any:
        """None before the producer's first heartbeat."""
        answer = shop.ask("examineProducerConnectionInfo", shop.producers, shop.topic)
        return answer if answer.get("connectionSet") else None

    return {
        "listed": shop.topic in run.java.admin("topics"),
        "in the broker's table": without_volatile(run.normalized(config[shop.topic])),
        "status": shop.ask("examineTopicStats", shop.topic),
        "route": shop.ask("examineTopicRouteInfo", shop.topic),
        "settings": shop.ask("examineTopicConfig", run.broker, shop.topic),
        "read by": shop.ask("queryTopicConsumeByWho", shop.topic),
        "progress of a reader": shop.ask("examineConsumeStats", shop.group, shop.topic),
        "lateness of a reader": shop.ask("queryConsumeTimeSpan", shop.topic, shop.group),
        "producers": wait_until(producers, what="the producer at its broker"),
        "no such topic": [
            shop.ask(method, "nowhere")
            for method in ("examineTopicStats", "examineTopicRouteInfo", "queryTopicConsumeByWho")
        ],
        "no such producers": shop.ask("examineProducerConnectionInfo", "nobody", shop.topic),
    }


@compares(topic_pages, "5.4.0")
def test_the_pages_of_topics_and_producers(seen: Seen) -> None:
    observed = seen()
    assert observed["listed"]
    assert observed["read by"] == {"groupList": ["group"]}
    assert [each["code"] for each in observed["no such topic"]] == [17, 17, 17]
    assert len(observed["producers"]["connectionSet"]) == 1


def group_pages(run: ScenarioRun) -> Any:
    shop = Shop(run)
    groups = run.java.admin_call("getAllSubscriptionGroup", run.broker, 10_000)["subscriptionGroupTable"]
    whole = run.java.admin_call("fetchConsumeStatsInBroker", run.broker, False, 10_000)["consumeStatsList"]
    (own,) = (listed[shop.group] for listed in whole if shop.group in listed)
    connections = run.java.admin_call("examineConsumerConnectionInfo", shop.group)
    (member,) = connections["connectionSet"]
    running = run.java.running_info(shop.group, member["clientId"], with_stacks=True)
    return {
        "in the broker's table": without_volatile(run.normalized(groups[shop.group])),
        "settings": shop.ask("examineSubscriptionGroupConfig", run.broker, shop.group),
        "members": without_volatile(run.normalized(connections)),
        "topics": shop.ask("queryTopicsByConsumer", shop.group),
        "progress": shop.ask("examineConsumeStats", shop.group),
        "topics in the sum of all groups": len(own),
        "stacks of the member's threads": "ConsumeMessageThread" in running["jstack"],
        "nobody online": [
            shop.ask(method, "nobody") for method in ("examineConsumerConnectionInfo", "examineConsumeStats")
        ],
    }


@compares(group_pages, "5.4.0")
def test_the_pages_of_groups(seen: Seen) -> None:
    observed = seen()
    assert observed["stacks of the member's threads"]
    # Looked for at the brokers of its retry topic, which is not there.
    assert [each["code"] for each in observed["nobody online"]] == [17, 17]
    assert observed["members"]["messageModel"] == "CLUSTERING"
