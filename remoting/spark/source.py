"""What Spark sees of the data source: planning in the driver, reading in its tasks (`pyspark.sql.datasource`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from remoting.client.errors import RouteNotFound
from remoting.spark import columns, spans
from remoting.spark.errors import MessagesLost, OptionError
from remoting.spark.options import Options, read_options
from remoting.spark.positions import EARLIEST, LATEST, Edge, Moment, Named, Position
from remoting.spark.spans import Plan, Span
from remoting.spark.topic_client import TopicClient, logger

if TYPE_CHECKING:
    import pyarrow as pa

_WORDS = {Edge.EARLIEST: EARLIEST, Edge.LATEST: LATEST}


class RocketmqDataSource(DataSource):
    """`format("rocketmq")`. Its options are those of docs/SPARK.md; a schema may leave out columns."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return columns.SCHEMA

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(read_options(self.options, is_stream=False), checked(schema))

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(read_options(self.options, is_stream=True), checked(schema))


class BatchReader(DataSourceReader):
    """Reads what there is between two positions when the query is planned; later messages are not seen."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Raises OptionError, MessagesLost, ClientError at once: a user waits, and a name may be misspelt."""
        options = self._options
        with TopicClient(options, retry_s=0) as client:
            queues = client.queues()
            firsts, ends = client.firsts(queues), client.ends(queues)
            start = resolve(client, "startingOffsets", options.start, queues, ends)
            end = resolve(client, "endingOffsets", options.end, queues, ends)
        planned = spans.plan(start, bounded(options, start, end, ends), firsts)
        judge(options, planned)
        return partitions(options, planned)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, self._schema, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batches; the offsets in Spark's checkpoint are the only memory of what was read.

    Lives in a Python process of the driver. The client is made there with the first request, so that the reader can
    be pickled for the tasks, which use nothing of it but options and schema.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._client: TopicClient | None = None
        self._target: dict[str, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def initialOffset(self) -> dict[str, int]:
        return resolve(self._asked(), "startingOffsets", self._options.start, self._asked().queues())

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max = self._options.trigger_offsets_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Returns up to where the next micro-batch goes; queues that no broker names now stay where they are."""
        end = spans.reached(start, self._ends() if self._target is None else self._target)
        if isinstance(limit, ReadMaxRows):
            moved = [queue for queue, stop in end.items() if start.get(queue) != stop]
            return spans.limited(start, end, self._asked().firsts(moved), limit.max_rows)
        return end

    def reportLatestOffset(self) -> dict[str, int]:
        return self._ends()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        moved = [queue for queue, stop in end.items() if start.get(queue) != stop]
        options, client = self._options, self._asked()
        firsts = client.firsts(moved) if options.fail_on_data_loss else client.firsts_of_those_there(moved)
        planned = spans.plan(start, {queue: end[queue] for queue in moved}, firsts)
        judge(options, planned)
        return partitions(options, planned)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, self._schema, partition)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _asked(self) -> TopicClient:
        if self._client is None:
            self._client = TopicClient(self._options)
        return self._client

    def _ends(self) -> dict[str, int]:
        client = self._asked()
        try:
            return client.ends(client.queues())
        except RouteNotFound:
            if self._options.fail_on_data_loss:
                raise
            return {}


def checked(schema: StructType) -> StructType:
    """Raises OptionError for a column that there is not, or not of this type."""
    columns.readers(schema.names)
    for field in schema:
        found, ours = field.dataType.simpleString(), columns.type_of(field.name)
        if found != ours:
            raise OptionError(f"the schema has {field.name} as {found}; it is {ours}: cast it")
    return schema


def resolve(
    client: TopicClient,
    option: str,
    position: Position,
    queues: list[str],
    known_ends: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Returns the offset of each queue at a position, asking only for what is not a number already.

    Where `known_ends` are given they are the latest, and no moment is behind them: messages come while this asks.
    """
    if isinstance(position, Moment):
        found = client.offsets(queues, position)
        return {queue: min(at, known_ends[queue]) for queue, at in found.items()} if known_ends is not None else found
    if isinstance(position, Edge):
        return _at_edge(client, _WORDS[position], queues, known_ends)
    assert isinstance(position, Named)
    named = position.for_queues(option, queues)
    found = {queue: offset for queue, offset in named.items() if offset not in (EARLIEST, LATEST)}
    for word in (EARLIEST, LATEST):
        found |= _at_edge(client, word, [queue for queue, offset in named.items() if offset == word], known_ends)
    return found


def _at_edge(client: TopicClient, word: int, queues: list[str], known_ends: Mapping[str, int] | None) -> dict[str, int]:
    if word == LATEST and known_ends is not None:
        return {queue: known_ends[queue] for queue in queues}
    return client.offsets(queues, word)


def bounded(
    options: Options, start: Mapping[str, int], end: Mapping[str, int], ends: Mapping[str, int]
) -> dict[str, int]:
    """Returns where each queue is read up to. Raises OptionError for an end before its start, or behind the queue's."""
    for queue, stop in end.items():
        if start[queue] > stop and isinstance(options.end, Named):
            raise OptionError(f"queue {queue} would be read from {start[queue]} to {stop}: exchange start and end")
        # Only an end that was named as a number can be behind: `resolve` puts no other there.
        if stop > ends[queue] and options.fail_on_data_loss:
            raise OptionError(
                f"endingOffsets asks for queue {queue} up to {stop}, which ends at {ends[queue]}: ask for less, or set"
                " failOnDataLoss to false"
            )
    return {queue: max(min(stop, ends[queue]), min(start[queue], ends[queue])) for queue, stop in end.items()}


def judge(options: Options, planned: Plan) -> None:
    """Raises MessagesLost for what a plan finds missing, or says so in the log where the options say to go on."""
    for lost in planned.lost:
        error = MessagesLost(options.topic, lost)
        if options.fail_on_data_loss:
            raise error
        logger.warning("%s", error)


def partitions(options: Options, planned: Plan) -> list[InputPartition]:
    return [InputPartition(span) for span in spans.split(planned.spans, options.partition_records_max)]


def read(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yields a partition's messages; of a plan with nothing to read Spark makes one partition of None."""
    span = partition.value
    if not isinstance(span, Span):
        return
    broker_name = span.queue.rpartition(":")[0]
    arrow = to_arrow_schema(schema, timezone="UTC")
    gathered: list[columns.Row] = []
    gathered_bytes = 0
    with TopicClient(options) as client:
        for step in client.steps(span):
            for message in step.messages:
                row = columns.row(message, broker_name, options.namespace)
                gathered.append(row)
                gathered_bytes += message.total_bytes + len(row.body or b"")
            if len(gathered) >= options.batch_rows or gathered_bytes >= options.batch_bytes:
                yield columns.record_batch(gathered, arrow)
                gathered, gathered_bytes = [], 0
    if gathered:
        yield columns.record_batch(gathered, arrow)
