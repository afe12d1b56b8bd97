"""What becomes of messages after their listener's call, with a broker that takes them back or does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from consumer.engine.consume_result import ResultHandler
from consumer.engine.failure_policy import FailurePolicy
from consumer.engine.failures import Failures
from consumer.engine.listener_call import ListenerCall
from consumer.engine.listening import Listener
from consumer.engine.outcomes import DeadLetter, Later, NotDecoded
from consumer.engine.process_queue import CachedMessage, ProcessQueue
from consumer.engine.send_back import SendBack
from consumer.engine.statistics import Statistics
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.failures import FailureReason
from remoting.wire.stored_message import StoredMessage
from tests.support.manual_clock import ManualClock
from tests.support.memory_offsets import MemoryOffsetStore
from tests.support.waiting import eventually

QUEUE = MessageQueue("orders", "broker-a", 0)


@dataclass
class TakingBack:
    """Stands for the brokers: takes messages back, or none of them."""

    is_willing: bool = True
    sent: list[tuple[int, int]] = field(default_factory=list)
    reasons: list[FailureReason | None] = field(default_factory=list)

    async def send(self, cached: CachedMessage, delay_level: int, reason: FailureReason | None = None) -> bool:
        self.sent.append((cached.stored.queue_offset, delay_level))
        self.reasons.append(reason)
        return self.is_willing


class Results:
    def __init__(self, *, failures: FailurePolicy | None = None) -> None:
        self.process_queue = ProcessQueue(QUEUE, 0)
        self.offsets = MemoryOffsetStore()
        self.brokers = TakingBack()
        self.again: list[int] = []
        self.delivered: list[int] = []
        self.statistics = Statistics(
            ManualClock(0), lambda _topic, _now_ms, took_ms: self.delivered.append(len(took_ms))
        )
        self.listener = Listener("orders", print, failures=failures or FailurePolicy(), name="shop.bill")
        self.failures = Failures("host@1#a", ManualClock(7))
        self.handler = ResultHandler(
            group="billing",
            offsets=self.offsets,
            send_back=cast("SendBack", self.brokers),
            statistics=self.statistics,
            failures=self.failures,
            consume_again=lambda cached: self.again.append(cached.stored.queue_offset),
            local_retry_after_s=0.0,
        )

    def call(self, count: int, error: BaseException | None = None, **fields: Any) -> ListenerCall:
        """A finished call for the next `count` messages."""
        first = (self.process_queue.offset_max if self.process_queue.message_count else -1) or 0
        first = first + 1 if self.process_queue.message_count else 0
        messages = [StoredMessage(topic="orders", queue_id=0, queue_offset=first + each) for each in range(count)]
        call = ListenerCall("orders", self.listener, self.process_queue.put(messages, first + count))
        call.error = error
        for name, value in fields.items():
            setattr(call, name, value)
        return call

    @property
    def committed(self) -> int | None:
        return self.offsets.held_offset(QUEUE)


async def test_the_offset_to_commit_is_that_of_the_smallest_unfinished_message() -> None:
    results = Results()
    first, second, third = results.call(1), results.call(2), results.call(1)
    results.handler.handle([third, second])
    assert results.committed == 0
    results.handler.handle([first])
    assert results.committed == 4
    assert results.brokers.sent == []


async def test_only_what_its_listener_consumed_counts_as_delivered() -> None:
    results = Results()
    results.handler.handle([results.call(3), results.call(1, ValueError("no")), results.call(3, Later(consumed=2))])
    await results.handler.sent_back()
    assert sorted(results.delivered) == [2, 3]


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        pytest.param(ValueError("no"), [(0, 0), (1, 0), (2, 0)], id="an exception returns all of a batch"),
        pytest.param(SystemExit(1), [(0, 0), (1, 0), (2, 0)], id="also one that wants to end the process"),
        pytest.param(Later(consumed=2), [(2, 0)], id="the first two are consumed"),
        pytest.param(Later(consumed=9), [], id="more than there were are all"),
        pytest.param(Later(delay_level=1), [(0, 1), (1, 1), (2, 1)], id="a level that the listener chose"),
        pytest.param(Later(delay_s=45, consumed=1), [(1, 5), (2, 5)], id="a time: the first level not shorter"),
        pytest.param(DeadLetter("never"), [(0, -1), (1, -1), (2, -1)], id="dead letters at once"),
        pytest.param(KeyError("sku"), [(0, -1), (1, -1), (2, -1)], id="an exception that no retry helps"),
        pytest.param(ConnectionResetError(), [(0, 5), (1, 5), (2, 5)], id="a delay of the exception's base"),
    ],
)
async def test_what_is_not_consumed_is_sent_back_and_then_counts_as_consumed(
    error: BaseException, sent: list[tuple[int, int]]
) -> None:
    policy = FailurePolicy(dead_letter_on=(LookupError,), retry_delays_s={ConnectionError: 60, OSError: 5})
    results = Results(failures=policy)
    results.handler.handle([results.call(3, error)])
    await results.handler.sent_back()
    assert results.brokers.sent == sent
    assert (results.committed, results.process_queue.message_count) == (3, 0)
    failed = results.statistics.status("orders").consume_failed_msgs
    assert failed == len(sent)


async def test_a_send_back_tells_why_and_the_member_keeps_it() -> None:
    results = Results()
    results.handler.handle([results.call(1, ConnectionResetError("the bank hung up\nsecond line"))])
    overdue = results.call(1)
    results.handler.send_back_overdue(results.listener, overdue.first, 900_000)
    await results.handler.sent_back()
    first, second = results.brokers.reasons
    assert first == FailureReason("ConnectionResetError", "the bank hung up", "shop.bill", "host@1#a", 1)
    assert second is not None
    assert second.text == "its listener ran for more than 900 s"
    assert [(each.exception, each.failed_ms) for each in results.failures.latest()] == [
        ("consumer.engine.outcomes.ConsumeTimedOut", 7),
        ("ConnectionResetError", 7),
    ]


async def test_a_message_of_a_batch_that_could_not_be_read_goes_back_and_the_others_are_consumed() -> None:
    results = Results()
    call = results.call(3)
    call.spoiled.append((call.messages[1], NotDecoded("no number")))
    call.messages = [call.messages[0], call.messages[2]]
    results.handler.handle([call])
    assert results.committed == 1
    await results.handler.sent_back()
    assert (results.brokers.sent, results.committed) == ([(1, 0)], 3)


async def test_a_message_that_no_broker_takes_back_stays_and_is_consumed_again_here() -> None:
    results = Results()
    results.brokers.is_willing = False
    call = results.call(2, ValueError())
    results.handler.handle([call])
    await results.handler.sent_back()
    await eventually(lambda: results.again == [0, 1])
    assert (results.committed, results.process_queue.message_count) == (None, 2)
    assert [cached.reconsume_times for cached in call.messages] == [1, 1]
    await results.handler.close()


@pytest.mark.parametrize("error", [None, ValueError(), Later(consumed=1)])
@pytest.mark.parametrize("fate", ["dropped", "skipped"])
async def test_results_of_a_queue_that_another_member_owns_change_nothing(
    fate: str, error: BaseException | None
) -> None:
    results = Results()
    call = results.call(2, error, is_skipped=fate == "skipped")
    if fate == "dropped":
        results.process_queue.drop()
    results.handler.handle([call])
    await results.handler.sent_back()
    assert (results.committed, results.brokers.sent) == (None, [])


async def test_a_listener_that_ends_after_its_message_was_sent_back_as_overdue_changes_nothing() -> None:
    results = Results()
    late, failed = results.call(1), results.call(1, ValueError())
    for call in (late, failed):
        results.handler.send_back_overdue(call.listener, call.first, 900_000)
    await results.handler.sent_back()
    assert (results.brokers.sent, results.committed) == ([(0, 3), (1, 3)], 2)
    results.handler.handle([late, failed])
    await results.handler.sent_back()
    assert (results.brokers.sent, results.committed) == ([(0, 3), (1, 3)], 2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Later(delay_level=3, delay_s=10), "not both"),
        (lambda: Later(delay_level=-1), "DeadLetter"),
        (lambda: Later(delay_s=0), "no time to wait"),
        (lambda: Later(delay_s=float("nan")), "no time to wait"),
        (lambda: Later(consumed=-1), "less than 0"),
        (lambda: FailurePolicy(retry_delays_s={OSError: -5}), "no time to wait"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(("seconds", "level"), [(0.2, 1), (1, 1), (2, 2), (30, 4), (31, 5), (7200, 18), (90_000, 18)])
def test_a_time_means_the_first_level_that_is_not_shorter(seconds: float, level: int) -> None:
    assert Later(delay_s=seconds).delay_level == level
