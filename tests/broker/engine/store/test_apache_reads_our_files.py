"""A team that outgrows one machine takes its files along: Apache's broker recovers and serves what our store wrote."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import StoreConfig
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.stored_message import decode_messages
from tests.support.apache import ApacheRocketMQ
from tests.support.asking import ask
from tests.support.java import require_apache
from tests.support.stores import abandon, draft, read_queue

pytestmark = [pytest.mark.journey, pytest.mark.java]

MESSAGES = 600
SEGMENT_BYTES = 1 << 18


def write_store(folder: Path) -> MessageStore:
    store = MessageStore.open(folder, StoreConfig(segment_bytes=SEGMENT_BYTES, flush="async"))
    for number in range(MESSAGES):
        body = b"%d " % number * (number % 200 + 1)
        store.append(draft(body, queue_id=number % 2, tags="paid", keys=f"k{number}", unique_key=f"{number:032X}"))
    return store


# One start of Apache's broker is enough for every day: it verifies each record and rebuilds from them.
EVERY_DAY = [pytest.param("rebuilding-consume-queues", "true", id="rebuilding-with-crc")]
IN_TORTURE = [
    pytest.param("rebuilding-consume-queues", "false", id="rebuilding-without-crc"),
    pytest.param("with-our-consume-queues", "true", id="our-queues-with-crc"),
    pytest.param("with-our-consume-queues", "false", id="our-queues-without-crc"),
]


@pytest.mark.parametrize(("queues", "checks_crc"), EVERY_DAY + (IN_TORTURE if os.environ.get("TORTURE") else []))
def test_apache_serves_every_message_of_ours(tmp_path: Path, queues: str, checks_crc: str) -> None:
    require_apache()
    store = write_store(tmp_path / "ours")
    expected = [[message.body for message in read_queue(store, queue_id=queue_id)] for queue_id in range(2)]
    theirs = tmp_path / "apache" / "store"
    shutil.copytree(tmp_path / "ours" / "commitlog", theirs / "commitlog")
    if queues == "with-our-consume-queues":
        shutil.copytree(tmp_path / "ours" / "consumequeue", theirs / "consumequeue")
        shutil.copy(tmp_path / "ours" / "checkpoint", theirs / "checkpoint")
    (theirs / "abort").write_text("1")
    abandon(store)
    settings = {"mappedFileSizeCommitLog": str(SEGMENT_BYTES), "enabledAppendPropCRC": checks_crc}
    with ApacheRocketMQ(tmp_path / "apache", settings=settings) as apache:
        update = {"topic": "orders", "defaultTopic": "TBW102", "readQueueNums": "2", "writeQueueNums": "2"}
        update |= {"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}
        created = ask(apache.broker, Command(code=RequestCode.UPDATE_AND_CREATE_TOPIC, ext_fields=update))
        assert created.code == ResponseCode.SUCCESS, created.remark
        assert [pull_all(apache.broker, queue_id) for queue_id in range(2)] == expected


def pull_all(broker: str, queue_id: int) -> list[bytes]:
    bodies: list[bytes] = []
    position = 0
    while True:
        fields = {"consumerGroup": "g", "topic": "orders", "queueId": str(queue_id), "queueOffset": str(position)}
        fields |= {"maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0"}
        fields |= {"subscription": "paid", "subVersion": "0", "expressionType": "TAG"}
        answer = ask(broker, Command(code=RequestCode.PULL_MESSAGE, ext_fields=fields))
        if answer.code != ResponseCode.SUCCESS:
            assert answer.code == ResponseCode.PULL_NOT_FOUND, answer.remark
            return bodies
        bodies += [message.body for message in decode_messages(answer.body)]
        position = int(answer.ext_fields["nextBeginOffset"])
