"""What users may write, and what they are told otherwise."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from remoting.spark.errors import OptionError
from remoting.spark.options import BATCH_ROWS, RETRY_S, Options, read_options
from remoting.spark.positions import EARLIEST, LATEST, Edge, Moment, Named, read_moment, read_offsets

PLACE = {"namesrv": "127.0.0.1:9876", "topic": "orders"}


def options(*, is_stream: bool = False, **given: str) -> Options:
    return read_options({**PLACE, **given}, is_stream=is_stream)


def test_namesrv_and_topic_are_enough() -> None:
    batch, stream = options(), options(is_stream=True)
    assert (batch.start, batch.end, stream.start) == (Edge.EARLIEST, Edge.LATEST, Edge.LATEST)
    assert (batch.fail_on_data_loss, batch.retry_s, batch.batch_rows) == (True, RETRY_S, BATCH_ROWS)


def test_names_count_in_any_case() -> None:
    read = options(STARTINGOFFSETS="Latest", failondataloss="FALSE", maxRecordsPerPartition="10", retryseconds="0")
    assert read.start is Edge.LATEST
    assert (read.fail_on_data_loss, read.partition_records_max, read.retry_s) == (False, 10, 0.0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"namesrv": " "}, "the option namesrv is missing"),
        ({"topic": ""}, "the option topic is missing"),
        ({"topic": "a b"}, "holds a character other than"),
        ({"tag": "a"}, "no option 'tag': tags is meant?"),
        ({"group": "x"}, "no option 'group'"),
        ({"tags": "a", "sql": "n > 1"}, "exclude each other"),
        ({"sql": " "}, "the SQL92 expression is blank"),
        ({"startingOffsets": "first"}, "startingOffsets is 'first': earliest, latest, or offsets by queue"),
        ({"startingOffsets": '{"a:0": -3}'}, "offsets by queue as JSON"),
        ({"startingOffsets": '{"a:0": true}'}, "offsets by queue as JSON"),
        ({"startingOffsets": "latest", "startingTimestamp": "0"}, "startingOffsets and startingTimestamp exclude"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp is 'yesterday': milliseconds"),
        ({"endingTimestamp": "9" * 30}, "milliseconds since the epoch"),
        ({"startingTimestamp": "2", "endingTimestamp": "1"}, "exchange them"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger cannot be given here"),
        ({"maxRecordsPerPartition": "0"}, "a whole number from 1 on"),
        ({"batchBytes": "9" * 40}, "a whole number"),
        ({"failOnDataLoss": "no"}, "true or false"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_remedy(given: dict[str, str], told: str) -> None:
    with pytest.raises(OptionError, match=re.escape(told)):
        options(**given)


def test_a_stream_has_no_end() -> None:
    with pytest.raises(OptionError, match="a stream has no end"):
        options(is_stream=True, endingOffsets="latest")


def test_times_are_read_in_both_forms() -> None:
    noon = Moment(round(datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp() * 1000))
    for text in ("2026-11-22T12:00:00Z", "2026-11-22T20:00:00+08:00", "2026-11-22 12:00", str(noon.ms)):
        assert read_moment("startingTimestamp", text) == noon


def test_offsets_by_queue_are_whole() -> None:
    named = read_offsets("startingOffsets", '{"a:0": 7, "*": -1}')
    assert isinstance(named, Named)
    assert named.for_queues("startingOffsets", ["a:0", "a:1"]) == {"a:0": 7, "a:1": LATEST}
    only = read_offsets("startingOffsets", '{"a:0": -2}')
    assert isinstance(only, Named)
    assert only.for_queues("startingOffsets", ["a:0"]) == {"a:0": EARLIEST}
    with pytest.raises(OptionError, match='does not name a:1: add them, or "\\*"'):
        only.for_queues("startingOffsets", ["a:0", "a:1"])
    with pytest.raises(OptionError, match="names a:0; the topic has b:0"):
        only.for_queues("startingOffsets", ["b:0"])
