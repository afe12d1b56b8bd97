"""What each answer to a pull means for a span."""

from __future__ import annotations

import pytest

from remoting.client.pull_answer import PullAnswer, PullStatus
from remoting.spark.reading import take
from remoting.spark.spans import Span
from remoting.wire.stored_message import StoredMessage

SPAN = Span("a:0", 0, 10)


def answer(status: PullStatus, next_offset: int, *offsets: int) -> PullAnswer:
    messages = [StoredMessage(topic="orders", queue_id=0, queue_offset=offset) for offset in offsets]
    return PullAnswer(status, next_offset, 0, 100, 0, messages)


@pytest.mark.parametrize(
    ("is_dense", "got", "offsets", "next_offset", "lost"),
    [
        (True, answer(PullStatus.FOUND, 7, 4, 5, 6), [4, 5, 6], 7, None),
        (True, answer(PullStatus.FOUND, 12, *range(4, 12)), [4, 5, 6, 7, 8, 9], 10, None),
        (False, answer(PullStatus.FOUND, 8, 5), [5], 8, None),
        (False, answer(PullStatus.NO_MATCHED_MESSAGE, 9), [], 9, None),
        (True, answer(PullStatus.NO_MATCHED_MESSAGE, 9), [], 9, Span("a:0", 4, 9)),
        (True, answer(PullStatus.FOUND, 8, 6, 7), [6, 7], 8, Span("a:0", 4, 6)),
        (True, answer(PullStatus.FOUND, 8, 2, 4, 5, 6, 7), [4, 5, 6, 7], 8, None),
        (False, answer(PullStatus.OFFSET_ILLEGAL, 6), [], 6, Span("a:0", 4, 6)),
        (False, answer(PullStatus.OFFSET_ILLEGAL, 60), [], 10, Span("a:0", 4, 10)),
        (True, answer(PullStatus.OFFSET_ILLEGAL, 0), [], 4, None),
        (True, answer(PullStatus.NO_NEW_MESSAGE, 4), [], 4, None),
        (True, answer(PullStatus.FOUND, 4, 4), [], 4, None),
    ],
    ids=[
        "found",
        "found beyond the end",
        "a filter leaves out",
        "a filter leaves out all",
        "all deleted under a pull",
        "some deleted under a pull",
        "older ones are not ours",
        "below the first",
        "below the first, all gone",
        "behind the end",
        "nothing there",
        "an answer that leads nowhere",
    ],
)
def test_an_answer_is_taken(
    is_dense: bool, got: PullAnswer, offsets: list[int], next_offset: int, lost: Span | None
) -> None:
    step = take(SPAN, 4, got, is_dense=is_dense)
    assert [message.queue_offset for message in step.messages] == offsets
    assert (step.next_offset, step.lost) == (next_offset, lost)
