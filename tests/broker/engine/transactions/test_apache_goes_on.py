"""Who outgrows one machine takes open transactions along: Apache's broker goes on from our files."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from broker.engine.store.values import StoreConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.stored_message import StoredMessage, decode_message
from tests.support import broker_parts
from tests.support.apache import ApacheRocketMQ
from tests.support.broker_parts import BrokerParts
from tests.support.java import require_apache
from tests.support.stores import ManualClock, draft
from tests.support.transaction_client import COMMIT, GROUP, TOPIC, TransactionClient
from tests.support.waiting import eventually

pytestmark = [pytest.mark.journey, pytest.mark.java]

SEGMENT_BYTES = 1 << 18
CHECKED_WITHIN_S = 150
SETTINGS = {
    "mappedFileSizeCommitLog": str(SEGMENT_BYTES),
    "transactionTimeOut": "500",
    "transactionCheckInterval": "1000",
}


async def test_apache_asks_for_what_we_left_undecided_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_apache()
    monkeypatch.setattr(broker_parts, "SMALL", StoreConfig(segment_bytes=SEGMENT_BYTES, flush="async"))
    await leave_transactions(tmp_path / "ours")
    theirs = tmp_path / "apache" / "store"
    shutil.copytree(tmp_path / "ours" / "commitlog", theirs / "commitlog")
    shutil.copytree(tmp_path / "ours" / "config", theirs / "config", ignore=shutil.ignore_patterns("topics*"))
    (theirs / "abort").write_text("1")
    with ApacheRocketMQ(tmp_path / "apache", settings=SETTINGS) as apache:
        shop = await TransactionClient.connect(apache.broker)
        try:
            await has_topic(shop)
            async with asyncio.timeout(CHECKED_WITHIN_S):
                checks = [await shop.asked.get() for _ in range(3)]
            assert {decode_message(check.body).body for check in checks} == {b"undecided"}
            assert await shop.end_asked(checks[-1], COMMIT) == ResponseCode.SUCCESS
            # Apache's broker makes a message readable a moment after it has stored it.
            pulled = await eventually(lambda: _two_pulled(shop))
            assert [message.body for message in pulled] == [b"committed", b"undecided"]
        finally:
            await shop.close()


async def _two_pulled(shop: TransactionClient) -> list[StoredMessage] | None:
    pulled = await shop.pull()
    return pulled if len(pulled) > 1 else None


async def leave_transactions(folder: Path) -> None:
    """One committed, one rolled back, one undecided."""
    now = ManualClock(time.time_ns() // 1_000_000 - 60_000)
    parts = BrokerParts(folder, clock=now)
    parts.transactions.recover()
    halves = {}
    for body in (b"committed", b"rolled back", b"undecided"):
        message = draft(body, TOPIC, 0, born_timestamp_ms=now())
        values = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": body.hex()}
        found: list = []
        answer = parts.transactions.begin(message, values, found.append)
        parts.accepting.submit(message, values, waits=True, answer=answer)
        parts.accepting.store_submitted()
        halves[body] = parts.store.message_at(found[0][0].commit_log_offset)
    parts.transactions.commit(halves[b"committed"], lambda error: None)
    parts.transactions.roll_back(halves[b"rolled back"], lambda error: None)
    parts.accepting.store_submitted()
    await parts.transactions.stop()
    await parts.offsets.save()
    parts.close()


async def has_topic(shop: TransactionClient) -> None:
    fields = {"topic": TOPIC, "defaultTopic": "TBW102", "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    fields |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"}
    answer = await shop.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, **fields)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
