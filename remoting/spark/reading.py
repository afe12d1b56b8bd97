"""Goes through one span: what each answer to a pull gives, where to go on, and what is missing. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from remoting.client.pull_answer import PullAnswer, PullStatus
from remoting.spark.spans import Span
from remoting.wire.stored_message import StoredMessage


@dataclass(frozen=True, slots=True)
class Step:
    """`next_offset` is where to pull next; where it is that of the pull, the queue ends there for now."""

    messages: list[StoredMessage]
    next_offset: int
    lost: Span | None = None


def take(span: Span, offset: int, answer: PullAnswer, *, is_dense: bool) -> Step:
    """Reads the answer to a pull of `offset`. `is_dense`: no filter, so each offset that is left out is lost.

    A broker that is deleting answers with the messages behind those that are gone, or with none and an offset further
    on.
    """
    is_stuck = answer.next_offset <= offset
    if is_stuck or answer.status is PullStatus.NO_NEW_MESSAGE:
        return Step([], offset)
    next_offset = min(answer.next_offset, span.end)
    if answer.status is PullStatus.OFFSET_ILLEGAL:
        return Step([], next_offset, Span(span.queue, offset, next_offset))
    messages = [message for message in answer.messages if offset <= message.queue_offset < next_offset]
    return Step(messages, next_offset, _hole(span.queue, offset, next_offset, messages) if is_dense else None)


def _hole(queue: str, offset: int, end: int, messages: list[StoredMessage]) -> Span | None:
    """Returns from the first missing offset to the last."""
    if len(messages) == end - offset:
        return None
    missing = sorted(set(range(offset, end)) - {message.queue_offset for message in messages})
    return Span(queue, missing[0], missing[-1] + 1) if missing else None
