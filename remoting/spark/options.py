"""The options of the data source, checked. Pure. Names are those of Spark's source for Kafka where it has such."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from remoting.spark.errors import OptionError
from remoting.spark.positions import Edge, Moment, Position, read_moment, read_offsets
from remoting.wire.errors import MessageError
from remoting.wire.expressions import Expression, tags_or_sql
from remoting.wire.names import check_topic, with_namespace

# For how long a broker that does not answer is asked again: a restart takes less, and Spark in local mode tries no task
# a second time.
RETRY_S = 30.0
# What a task gathers before it hands rows to Spark; whichever comes first. Spark's own batches have 10,000 rows.
BATCH_ROWS = 4096
BATCH_BYTES = 8 * 1024 * 1024

NAMES = (
    "namesrv",
    "topic",
    "namespace",
    "tags",
    "sql",
    "startingOffsets",
    "startingTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "failOnDataLoss",
    "retrySeconds",
    "batchRows",
    "batchBytes",
)
_BATCH_ONLY = ("endingOffsets", "endingTimestamp")
_STREAM_ONLY = ("maxOffsetsPerTrigger",)


@dataclass(frozen=True, slots=True)
class Options:
    """`topic` is as users write it, without the namespace."""

    namesrv: str
    topic: str
    namespace: str = ""
    expression: Expression = field(default_factory=lambda: tags_or_sql("*", None))
    start: Position = Edge.EARLIEST
    end: Position = Edge.LATEST
    partition_records_max: int | None = None
    trigger_offsets_max: int | None = None
    fail_on_data_loss: bool = True
    retry_s: float = RETRY_S
    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES


def read_options(given: Mapping[str, str], *, is_stream: bool) -> Options:
    """Returns what a user gave to `option()`, whatever the case of its names. Raises OptionError."""
    texts = _Texts(given, is_stream)
    topic = texts.required("topic", "the topic to read")
    namespace = texts.get("namespace") or ""
    try:
        check_topic(with_namespace(namespace, topic))
        expression = tags_or_sql(texts.get("tags") or "*", texts.get("sql"))
    except MessageError as error:
        raise OptionError(str(error)) from error
    start = texts.position("starting", Edge.LATEST if is_stream else Edge.EARLIEST)
    end = texts.position("ending", Edge.LATEST)
    if isinstance(start, Moment) and isinstance(end, Moment) and start.ms > end.ms:
        raise OptionError("startingTimestamp is after endingTimestamp: exchange them")
    return Options(
        namesrv=texts.required("namesrv", "the name servers' addresses, host:port;host:port"),
        topic=topic,
        namespace=namespace,
        expression=expression,
        start=start,
        end=end,
        partition_records_max=texts.number("maxRecordsPerPartition"),
        trigger_offsets_max=texts.number("maxOffsetsPerTrigger"),
        fail_on_data_loss=texts.truth("failOnDataLoss", default=True),
        retry_s=float(texts.number("retrySeconds", least=0) if texts.get("retrySeconds") else RETRY_S),  # type: ignore[arg-type]
        batch_rows=texts.number("batchRows") or BATCH_ROWS,
        batch_bytes=texts.number("batchBytes") or BATCH_BYTES,
    )


class _Texts:
    def __init__(self, given: Mapping[str, str], is_stream: bool) -> None:
        known = {name.lower(): name for name in NAMES}
        self._texts = {}
        for name, text in given.items():
            if name.lower() not in known:
                close = difflib.get_close_matches(name.lower(), known, 1)
                meant = f": {known[close[0]]} is meant?" if close else f"; there are: {', '.join(NAMES)}"
                raise OptionError(f"no option {name!r}{meant}")
            self._texts[known[name.lower()]] = text
        for name in _BATCH_ONLY if is_stream else _STREAM_ONLY:
            if name in self._texts:
                kind = "a stream has no end" if is_stream else "it bounds the micro-batches of a stream"
                raise OptionError(f"{name} cannot be given here: {kind}")

    def get(self, name: str) -> str | None:
        return self._texts.get(name)

    def required(self, name: str, meaning: str) -> str:
        text = (self.get(name) or "").strip()
        if not text:
            raise OptionError(f'the option {name} is missing: {meaning}; .option("{name}", …)')
        return text

    def number(self, name: str, least: int = 1) -> int | None:
        text = self.get(name)
        if text is None:
            return None
        word = text.strip()
        if not (word.isascii() and word.isdigit() and len(word) < 19 and int(word) >= least):
            raise OptionError(f"{name} is {text!r}: a whole number from {least} on")
        return int(word)

    def truth(self, name: str, *, default: bool) -> bool:
        text = self.get(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise OptionError(f"{name} is {text!r}: true or false")
        return text.strip().lower() == "true"

    def position(self, kind: str, default: Position) -> Position:
        offsets, moment = self.get(f"{kind}Offsets"), self.get(f"{kind}Timestamp")
        if offsets is not None and moment is not None:
            raise OptionError(f"{kind}Offsets and {kind}Timestamp exclude each other: leave one out")
        if offsets is not None:
            return read_offsets(f"{kind}Offsets", offsets)
        if moment is not None:
            return read_moment(f"{kind}Timestamp", moment)
        return default
