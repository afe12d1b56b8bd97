"""Transactions of Apache's Go client: decided at once, or when the broker asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.go_client import GoClient

pytestmark = [pytest.mark.journey, pytest.mark.java, pytest.mark.go]

Fresh = Callable[[str], str]
# A half message is asked about after 6 s, then every 5 s.
ASKED_WITHIN_S = 150.0


def test_transactions_end_as_their_producer_says_at_once_or_when_asked(go: GoClient, fresh: Fresh) -> None:
    topic, sender, name = fresh("go-transactions"), fresh("producer"), fresh("consumer")
    go.producer(sender, transaction=True)

    def send(local: str, checked: str) -> None:
        go.send(sender, topic, body=f"{local}-{checked}-", properties={"local": local, "checked": checked})

    send("commit", "")
    go.consumer(name, fresh("group"), topic)
    go.wait_consumed(1, name)
    for local, checked in (("rollback", ""), ("unknown", "commit"), ("unknown", "rollback")):
        send(local, checked)
    checks = go.wait_events("checked", 2, sender, within_s=ASKED_WITHIN_S)
    got = go.wait_consumed(2, name)
    go.send(sender, topic, body="last-", properties={"local": "commit", "checked": ""})
    got = go.wait_consumed(3, name)
    for each in (name, sender):
        go.stop(each)
    assert [message["body"] for message in got] == ["commit--0", "unknown-commit-0", "last-0"]
    assert {message["body"] for message in checks} == {"unknown-commit-0", "unknown-rollback-0"}
    assert {message["properties"]["TRAN_MSG"] for message in got} == {"true"}
