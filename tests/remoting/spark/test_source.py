"""Planning and reading as Spark calls them, without its JVM: against a broker whose queues lose and gain messages."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyspark")
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from remoting.client.errors import RouteNotFound
from remoting.spark import RocketmqDataSource
from remoting.spark.columns import COLUMNS
from remoting.spark.errors import MessagesLost, OptionError
from remoting.spark.source import BatchReader, StreamReader
from remoting.spark.topic_client import TopicClient
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.compression import COMPRESSED_FLAG
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage
from tests.support.broker_thread import BrokerThread
from tests.support.memory_broker import BROKER_NAME

TYPES: dict[str, DataType] = {
    "STRING": StringType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "BINARY": BinaryType(),
    "TIMESTAMP": TimestampType(),
    "ARRAY<STRING>": ArrayType(StringType()),
    "MAP<STRING, STRING>": MapType(StringType(), StringType()),
}
ALL = StructType([StructField(name, TYPES[kind]) for name, (kind, _) in COLUMNS.items()])
SOME = StructType([field for field in ALL if field.name in ("queue", "offset", "body")])


@pytest.fixture
def cluster() -> Iterator[BrokerThread]:
    with BrokerThread() as cluster:
        cluster.call(cluster.broker.create_topic, "orders", 2)
        yield cluster


def source(cluster: BrokerThread, **options: str) -> RocketmqDataSource:
    return RocketmqDataSource({"namesrv": cluster.broker.namesrv, "topic": "orders", "retrySeconds": "0", **options})


def batch(cluster: BrokerThread, schema: StructType = SOME, **options: str) -> BatchReader:
    return source(cluster, **options).reader(schema)


def stream(cluster: BrokerThread, **options: str) -> StreamReader:
    return source(cluster, startingOffsets="earliest", **options).streamReader(SOME)


def rows(reader: BatchReader | StreamReader, partitions: list[Any]) -> list[dict[str, Any]]:
    """As tasks read: with a reader and partitions that were pickled."""
    reader, partitions = pickle.loads(pickle.dumps((reader, partitions)))  # noqa: S301
    return [row for one in partitions for found in reader.read(one) for row in found.to_pylist()]


def bodies(reader: BatchReader | StreamReader, partitions: list[Any]) -> list[bytes]:
    return sorted(row["body"] for row in rows(reader, partitions))


def put(cluster: BrokerThread, *texts: str, queue_id: int | None = None) -> None:
    cluster.call(lambda: cluster.broker.put("orders", *(text.encode() for text in texts), queue_id=queue_id))


def drop(cluster: BrokerThread, count: int, queue_id: int = 0) -> None:
    """Retention deletes the oldest messages of a queue."""

    def dropping() -> None:
        queue = MessageQueue("orders", BROKER_NAME, queue_id)
        del cluster.broker.queues[queue][:count]
        cluster.broker.first_offsets[queue] += count

    cluster.call(dropping)


def store(cluster: BrokerThread, message: StoredMessage) -> None:
    cluster.call(cluster.broker._store, MessageQueue("orders", BROKER_NAME, 0), message)


def test_a_batch_is_what_was_there_when_it_was_planned(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(100)))
    reader = batch(cluster)
    planned = reader.partitions()
    put(cluster, "too late")
    assert bodies(reader, planned) == sorted(b"%d" % number for number in range(100))
    assert len(planned) == 2


@pytest.mark.parametrize(
    "options",
    [{}, {"endingOffsets": '{"*": -1}'}, {"endingTimestamp": "4102444800000"}, {"startingOffsets": "latest"}],
    ids=["all defaults", "latest by queue", "a time in the future", "nothing but what comes"],
)
def test_a_message_that_comes_while_a_batch_is_planned_is_not_in_it(
    cluster: BrokerThread, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    put(cluster, "a", "b")
    asked = TopicClient.ends

    def ends_and_then_a_message(client: TopicClient, queues: Collection[str]) -> dict[str, int]:
        found = asked(client, queues)
        put(cluster, "too late", "too late")
        return found

    monkeypatch.setattr(TopicClient, "ends", ends_and_then_a_message)
    reader = batch(cluster, **options)
    assert bodies(reader, reader.partitions()) == ([] if "startingOffsets" in options else [b"a", b"b"])


@pytest.mark.slow
def test_users_of_the_source_need_no_django() -> None:
    code = (
        "import sys; import remoting.spark; sys.exit(any(n in sys.modules for n in ('django', 'celery', 'consumer')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3]).returncode == 0


def test_nothing_of_a_reader_stays_on_the_broker(cluster: BrokerThread) -> None:
    put(cluster, "a", "b")
    reader = batch(cluster)
    rows(reader, reader.partitions())
    broker = cluster.broker
    assert not broker.offsets
    assert not any(broker.members.values())
    codes = {code for code, _ in broker.seen}
    assert not codes & {RequestCode.HEART_BEAT, RequestCode.UPDATE_CONSUMER_OFFSET}


def test_an_empty_topic_gives_no_rows(cluster: BrokerThread) -> None:
    from pyspark.sql.datasource import InputPartition  # as Spark does for a plan without partitions

    reader = batch(cluster)
    assert reader.partitions() == []
    assert rows(reader, [InputPartition(None)]) == []


def test_big_queues_are_split(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(100)), queue_id=1)
    reader = batch(cluster, maxRecordsPerPartition="30", batchRows="7")
    planned = reader.partitions()
    assert len(planned) == 4
    assert [row["offset"] for row in rows(reader, planned)] == list(range(100))


def test_offsets_by_queue_and_tags_bound_what_is_read(cluster: BrokerThread) -> None:
    cluster.call(lambda: cluster.broker.put("orders", *(b"%d" % n for n in range(10)), tags="paid", queue_id=0))
    cluster.call(lambda: cluster.broker.put("orders", b"other", tags="sent", queue_id=1))
    named = f'{{"{BROKER_NAME}:0": 3, "*": -2}}'
    end = f'{{"{BROKER_NAME}:0": 5, "*": -1}}'
    reader = batch(cluster, startingOffsets=named, endingOffsets=end)
    assert bodies(reader, reader.partitions()) == [b"3", b"4", b"other"]
    paid = batch(cluster, startingOffsets=named, endingOffsets=end, tags="paid")
    assert bodies(paid, paid.partitions()) == [b"3", b"4"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"endingOffsets": '{"*": 5}'}, "up to 5, which ends at 1: ask for less"),
        ({"startingOffsets": '{"*": 1}', "endingOffsets": '{"*": 0}'}, "exchange start and end"),
        ({"startingOffsets": '{"x:9": 1}'}, "names x:9; the topic has memory:0, memory:1"),
    ],
)
def test_offsets_that_are_not_there_are_refused(cluster: BrokerThread, options: dict[str, str], told: str) -> None:
    put(cluster, "a", "b")
    with pytest.raises(OptionError, match=told):
        batch(cluster, **options).partitions()


def test_a_topic_that_is_not_there_is_named(cluster: BrokerThread) -> None:
    with pytest.raises(RouteNotFound, match="'unknown'"):
        batch(cluster, topic="unknown").partitions()


@pytest.mark.parametrize("answered", ["exact", "the last one", "far before", "far behind"])
def test_a_time_begins_at_the_first_message_of_it(cluster: BrokerThread, answered: str) -> None:
    """Whatever the broker answers: Apache's 4 line is off by some, and gives the last message where all are older."""
    put(cluster, *(str(number) for number in range(200)), queue_id=0)
    queue = MessageQueue("orders", BROKER_NAME, 0)

    def age() -> None:
        stored = cluster.broker.queues[queue]
        # Forty messages each millisecond.
        stored[:] = [
            msgspec.structs.replace(message, store_timestamp_ms=1000 + number // 40)
            for number, message in enumerate(stored)
        ]
        offset = {"exact": None, "the last one": 199, "far before": 0, "far behind": 150}[answered]
        if offset is not None:
            said = {"offset": str(offset)}
            cluster.broker.faults[RequestCode.SEARCH_OFFSET_BY_TIMESTAMP] = lambda request: response(
                request, ResponseCode.SUCCESS, ext_fields=said
            )

    cluster.call(age)
    one = f'{{"{BROKER_NAME}:1": -1, "{BROKER_NAME}:0": -1}}'
    for moment_ms, first in ((0, 0), (1000, 0), (1002, 80), (1004, 160)):
        reader = batch(cluster, startingTimestamp=str(moment_ms), endingOffsets=one)
        assert [row["offset"] for row in rows(reader, reader.partitions())] == list(range(first, 200))
    until = batch(cluster, endingTimestamp="1003")
    assert len(rows(until, until.partitions())) == 120
    everything = batch(cluster, endingTimestamp="9999")
    assert len(rows(everything, everything.partitions())) == 200
    assert batch(cluster, startingTimestamp="1005").partitions() == []


def test_what_retention_deleted_before_the_plan_fails_or_is_skipped(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(10)), queue_id=0)
    drop(cluster, 4)
    since = '{"*": 0}'
    with pytest.raises(MessagesLost, match=r"queue memory:0 the messages from 0 to 3 are gone.*failOnDataLoss"):
        batch(cluster, startingOffsets=since).partitions()
    going_on = batch(cluster, startingOffsets=since, failOnDataLoss="false")
    assert [row["offset"] for row in rows(going_on, going_on.partitions())] == list(range(4, 10))
    # Who asks for what is there loses nothing.
    earliest = batch(cluster)
    assert len(rows(earliest, earliest.partitions())) == 6


def test_what_retention_deletes_between_plan_and_read_fails_or_is_skipped(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(100)), queue_id=0)
    strict, going_on = batch(cluster), batch(cluster, failOnDataLoss="false")
    planned = strict.partitions()
    drop(cluster, 40)
    with pytest.raises(MessagesLost, match="from 0 to 39"):
        rows(strict, planned)
    assert [row["offset"] for row in rows(going_on, planned)] == list(range(40, 100))


def test_a_queue_that_lost_its_end_fails_or_is_skipped(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(50)), queue_id=0)
    strict, going_on = batch(cluster), batch(cluster, failOnDataLoss="false")
    planned = strict.partitions()
    cluster.call(lambda: cluster.broker.queues[MessageQueue("orders", BROKER_NAME, 0)].__delitem__(slice(45, None)))
    with pytest.raises(MessagesLost, match="from 45 to 49"):
        rows(strict, planned)
    assert len(rows(going_on, planned)) == 45


@pytest.mark.slow
def test_a_broker_that_is_busy_for_a_moment_is_asked_again(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(50)), queue_id=0)
    reader = batch(cluster, retrySeconds="30")
    planned = reader.partitions()
    refused: list[Command] = []

    def busy(request: Command) -> Command | None:
        refused.append(request)
        return response(request, ResponseCode.SYSTEM_BUSY, "later") if len(refused) == 1 else None

    cluster.broker.faults[RequestCode.PULL_MESSAGE] = busy
    assert len(rows(reader, planned)) == 50
    assert len(refused) > 1


@pytest.mark.slow
def test_a_hostile_message_costs_nobody_but_itself(cluster: BrokerThread) -> None:
    properties = encode_properties({Property.TAGS: "t", Property.KEYS: "k1  k2", "ключ": "\x00\ud800 💥"})
    store(cluster, StoredMessage(topic="orders", queue_id=0, body=b"not zlib", sys_flag=COMPRESSED_FLAG))
    bomb = zlib.compress(bytes(64 * 1024 * 1024))
    store(cluster, StoredMessage(topic="orders", queue_id=0, body=bomb, sys_flag=COMPRESSED_FLAG))
    store(cluster, StoredMessage(topic="orders", queue_id=0, body=b"", born_timestamp_ms=2**63 - 1))
    store(cluster, StoredMessage(topic="orders", queue_id=0, body=bytes(range(256)), born_timestamp_ms=-(2**63)))
    store(cluster, StoredMessage(topic="orders", queue_id=0, body=b"good", properties_text=properties))
    reader = batch(cluster, ALL)
    garbage, bomb_row, late, early, good = rows(reader, reader.partitions())
    assert garbage["body"] is None
    assert "cannot be read" in garbage["body_error"]
    assert bomb_row["body"] is None
    assert "larger than" in bomb_row["body_error"]
    assert (late["body"], late["born_at"], late["body_error"]) == (b"", None, None)
    assert (early["body"], early["born_at"]) == (bytes(range(256)), None)
    assert (good["body"], good["tags"], good["keys"]) == (b"good", "t", ["k1", "k2"])
    assert dict(good["properties"])["ключ"] == "\x00? 💥"


def test_a_schema_may_leave_out_columns_but_not_change_them(cluster: BrokerThread) -> None:
    put(cluster, "a")
    reader = batch(cluster, StructType([StructField("body", BinaryType())]))
    assert rows(reader, reader.partitions()) == [{"body": b"a"}]
    with pytest.raises(OptionError, match="the column 'value'; there are: topic, broker"):
        batch(cluster, StructType([StructField("value", BinaryType())]))
    with pytest.raises(OptionError, match="body as string; it is binary: cast it"):
        batch(cluster, StructType([StructField("body", StringType())]))


def test_a_namespace_is_no_part_of_what_users_see(cluster: BrokerThread) -> None:
    cluster.call(cluster.broker.create_topic, "prod%orders", 1)
    cluster.call(cluster.broker.put, "prod%orders", b"of prod")
    reader = batch(cluster, ALL, namespace="prod")
    (row,) = rows(reader, reader.partitions())
    assert (row["topic"], row["body"]) == ("orders", b"of prod")


class Query:
    """What Spark does with a stream's reader: a checkpoint of offsets, and the batches between them."""

    def __init__(self, reader: StreamReader, offset: dict[str, int] | None = None) -> None:
        self.reader = reader
        self.offset = reader.initialOffset() if offset is None else offset

    def next(self) -> list[bytes]:
        end = self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())
        start, self.offset = self.offset, end
        return bodies(self.reader, self.reader.partitions(start, end))


def test_a_stream_reads_each_message_once(cluster: BrokerThread) -> None:
    put(cluster, "1", "2")
    query = Query(stream(cluster))
    assert query.next() == [b"1", b"2"]
    assert query.next() == []
    put(cluster, "3")
    assert query.next() == [b"3"]
    query.reader.stop()
    put(cluster, "4")
    resumed = Query(stream(cluster), query.offset)
    assert resumed.next() == [b"4"]
    resumed.reader.stop()


def test_a_batch_that_is_done_again_is_the_same(cluster: BrokerThread) -> None:
    put(cluster, "1", "2")
    reader = stream(cluster)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    put(cluster, "3")
    for _ in range(2):
        assert bodies(reader, reader.partitions(start, end)) == [b"1", b"2"]
    reader.stop()


def test_new_queues_are_read_from_their_first_message(cluster: BrokerThread) -> None:
    put(cluster, "old")
    query = Query(source(cluster, startingOffsets="latest").streamReader(SOME))
    cluster.call(cluster.broker.create_topic, "orders", 4)
    put(cluster, "first of a new queue", queue_id=3)
    assert query.next() == [b"first of a new queue"]
    assert set(query.offset) == {f"{BROKER_NAME}:{number}" for number in range(4)}
    query.reader.stop()


def test_micro_batches_are_bounded(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(25)))
    query = Query(stream(cluster, maxOffsetsPerTrigger="10"))
    assert query.reader.getDefaultReadLimit() == ReadMaxRows(10)
    assert [len(query.next()) for _ in range(4)] == [10, 10, 5, 0]
    query.reader.stop()


def test_available_now_ends_with_what_was_there_at_its_start(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(12)))
    query = Query(stream(cluster, maxOffsetsPerTrigger="10"))
    query.reader.prepareForTriggerAvailableNow()
    put(cluster, "later")
    assert [len(query.next()) for _ in range(3)] == [10, 2, 0]
    query.reader.stop()


def test_a_stream_whose_messages_were_deleted_fails_or_goes_on(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(10)), queue_id=0)
    strict, going_on = Query(stream(cluster)), Query(stream(cluster, failOnDataLoss="false"))
    drop(cluster, 9)
    with pytest.raises(MessagesLost, match="from 0 to 8"):
        strict.next()
    assert going_on.next() == [b"9"]
    strict.reader.stop()
    going_on.reader.stop()


def test_a_topic_made_anew_fails_or_is_read_from_its_first_message(cluster: BrokerThread) -> None:
    put(cluster, *(str(number) for number in range(10)), queue_id=0)
    strict, going_on = Query(stream(cluster)), Query(stream(cluster, failOnDataLoss="false"))
    assert len(strict.next()) == len(going_on.next()) == 10
    cluster.call(lambda: cluster.broker.queues.update({MessageQueue("orders", BROKER_NAME, 0): []}))
    put(cluster, "anew", queue_id=0)
    with pytest.raises(MessagesLost):
        strict.next()
    assert going_on.next() == [b"anew"]
    strict.reader.stop()
    going_on.reader.stop()


def test_a_topic_that_is_deleted_ends_a_stream_or_leaves_it_waiting(cluster: BrokerThread) -> None:
    put(cluster, "1", queue_id=0)
    strict, going_on = Query(stream(cluster)), Query(stream(cluster, failOnDataLoss="false"))
    pending = going_on.reader.latestOffset(going_on.offset, ReadAllAvailable())
    cluster.call(cluster.broker.queues.clear)
    with pytest.raises(RouteNotFound):
        strict.next()
    assert going_on.next() == []
    assert going_on.offset == {f"{BROKER_NAME}:0": 0, f"{BROKER_NAME}:1": 0}
    assert pending[f"{BROKER_NAME}:0"] == 1
    strict.reader.stop()
    going_on.reader.stop()
