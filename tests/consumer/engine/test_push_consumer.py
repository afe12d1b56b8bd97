"""A member of a group against a broker in memory: joining, leaving, failing, filtering, stopping."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from consumer.engine.config import ConsumerConfig
from consumer.engine.consume_concurrently import ConcurrentLimits
from consumer.engine.failure_policy import FailurePolicy
from consumer.engine.listening import Listener
from consumer.engine.message import Message
from consumer.engine.outcomes import Later, NotDecoded
from consumer.engine.pull_loop import SPIN_ANSWER_MS, SPIN_PAUSE_S
from consumer.engine.push_consumer import PushConsumer
from consumer.engine.start_position import start_rule
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import read_running_info
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command, response
from tests.support.logged import records_of
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import GROUP, Members, listener_into, order_queues
from tests.support.waiting import cancelled_after, eventually

RETRY = f"%RETRY%{GROUP}"
DLQ = f"%DLQ%{GROUP}"
# Well before a regular heartbeat (30 s) or rebalance (20 s) would bring it about.
AT_ONCE_S = 15.0


async def test_a_member_consumes_every_message_once(broker: MemoryBroker, members: Members) -> None:
    bodies: list[bytes] = []
    sent = [f"order {number}".encode() for number in range(500)]
    broker.put("orders", *sent[:300])
    await members.start(listener_into(bodies))
    await eventually(lambda: len(bodies) >= 300)
    broker.put("orders", *sent[300:])
    await eventually(lambda: len(bodies) >= 500)
    assert Counter(bodies) == Counter(sent)


async def test_a_body_that_does_not_decode_comes_again_and_the_log_has_one_line_of_it(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[object] = []

    async def listen(message: Message) -> None:
        seen.append(message.data)

    def decode(body: bytes) -> int:
        if not body.isdigit():
            raise NotDecoded(f"no number: {body.decode()}")
        return int(body)

    broker.put("orders", b"seven", b"8")
    await members.start(listen, decode=decode, max_reconsume_times=1)
    await eventually(lambda: broker.queues.get(MessageQueue(DLQ, "memory", 0)))
    assert seen == [8]
    lines = records_of(caplog, "consumer.engine", logging.WARNING)
    assert [record.getMessage().split(": ", 2)[2] for record in lines] == ["NotDecoded: no number: seven"] * 2
    assert not any(record.exc_info for record in lines)


async def test_a_sync_listener_runs_in_at_most_the_given_number_of_threads(
    broker: MemoryBroker, members: Members
) -> None:
    lock, running, peak, seen = threading.Lock(), 0, 0, []

    def listen(message: Message) -> None:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        seen.append((threading.current_thread(), message.text))
        with lock:
            running -= 1

    broker.put("orders", *[b"x"] * 200)
    await members.start(listen, is_async=False, concurrent=ConcurrentLimits(threads=3))
    await eventually(lambda: len(seen) == 200)
    assert peak <= 3
    assert threading.main_thread() not in {thread for thread, _ in seen}


@pytest.mark.slow
async def test_members_share_the_queues_and_take_over_from_one_that_leaves(
    broker: MemoryBroker, members: Members
) -> None:
    bodies: list[bytes] = []
    first = await members.start(listener_into(bodies))
    await eventually(lambda: order_queues(first) == list(range(8)))
    second = await members.start(listener_into(bodies))
    await eventually(lambda: len(order_queues(first)) == len(order_queues(second)) == 4)
    third = await members.start(listener_into(bodies))
    everyone = [first, second, third]
    await eventually(lambda: sorted(len(order_queues(member)) for member in everyone) == [2, 3, 3])
    assert sorted(queue for member in everyone for queue in order_queues(member)) == list(range(8))
    await members.stop(first)
    await eventually(lambda: len(order_queues(second)) == len(order_queues(third)) == 4)
    broker.put("orders", *[f"{number}".encode() for number in range(64)])
    await eventually(lambda: len(bodies) == 64)


async def test_the_queues_of_a_lost_member_are_pulled_by_the_others_at_once(
    broker: MemoryBroker, members: Members
) -> None:
    first = await members.start(listener_into([]))
    second = await members.start(listener_into([]))
    await eventually(lambda: len(order_queues(first)) == len(order_queues(second)) == 4)
    members.lose(first)
    await eventually(lambda: order_queues(second) == list(range(8)), AT_ONCE_S)


async def test_progress_is_committed_by_a_stop_and_taken_up_by_the_next_member(
    broker: MemoryBroker, members: Members
) -> None:
    bodies: list[bytes] = []
    broker.put("orders", *[f"{number}".encode() for number in range(80)])
    member = await members.start(listener_into(bodies))
    await eventually(lambda: len(bodies) == 80)
    await members.stop(member)
    assert all(broker.offsets[GROUP, MessageQueue("orders", "memory", queue_id)] == 10 for queue_id in range(8))
    broker.put("orders", b"late", b"later")
    await members.start(listener_into(bodies))
    await eventually(lambda: len(bodies) == 82)
    assert bodies[-2:] == [b"late", b"later"]


async def test_a_stop_waits_for_the_listener_that_runs_and_leaves_the_rest_to_others(
    broker: MemoryBroker, members: Members
) -> None:
    began, may_end, ended = threading.Event(), threading.Event(), []

    def listen(message: Message) -> None:
        began.set()
        may_end.wait(60)
        ended.append(message.queue_offset)

    broker.put("orders", *[b"x"] * 5, queue_id=0)
    member = await members.start(listen, is_async=False, concurrent=ConcurrentLimits(threads=1))
    await eventually(began.is_set)
    stop = asyncio.create_task(members.stop(member))
    await asyncio.sleep(0.1)
    assert not stop.done()
    may_end.set()
    await stop
    assert ended == [0]
    assert broker.offsets[GROUP, MessageQueue("orders", "memory", 0)] == 1


@pytest.mark.parametrize("turns", range(1, 12))
async def test_a_stop_that_is_cancelled_leaves_the_group_and_nothing_that_runs(
    broker: MemoryBroker, members: Members, turns: int
) -> None:
    before = asyncio.all_tasks()
    member = await members.start(listener_into([]))
    await eventually(lambda: order_queues(member) == list(range(8)))
    await cancelled_after(member.stop(), turns)
    assert not broker.members[GROUP]
    await eventually(lambda: asyncio.all_tasks() <= before)


async def test_a_stop_that_is_cancelled_as_it_begins_commits_progress(broker: MemoryBroker, members: Members) -> None:
    bodies: list[bytes] = []
    broker.put("orders", *[b"x"] * 8)
    member = await members.start(listener_into(bodies))
    await eventually(lambda: len(bodies) == 8)
    await cancelled_after(member.stop(), 1)
    assert all(broker.offsets[GROUP, MessageQueue("orders", "memory", queue_id)] == 1 for queue_id in range(8))


@pytest.mark.slow
async def test_a_stop_does_not_wait_for_ever_for_a_listener_that_hangs(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def listen(message: Message) -> None:
        began.set()
        may_end.wait(60)

    broker.put("orders", b"x", queue_id=0)
    member = await members.start(listen, is_async=False, stop_timeout_s=0.2)
    await eventually(began.is_set)
    await asyncio.wait_for(members.stop(member), 60)
    may_end.set()
    assert "1 listeners ran on after 0.2 s" in caplog.text
    assert broker.offsets[GROUP, MessageQueue("orders", "memory", 0)] == 0


async def test_a_message_whose_listener_fails_comes_back_and_at_the_limit_is_a_dead_letter(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[str, int]] = []

    async def listen(message: Message) -> None:
        seen.append((message.topic, message.reconsume_times))
        raise ValueError("no such customer")

    broker.put("orders", b"bad", queue_id=0)
    await members.start(listen, max_reconsume_times=2)
    dead = MessageQueue(DLQ, "memory", 0)
    await eventually(lambda: broker.queues.get(dead))
    assert seen == [("orders", 0), ("orders", 1), ("orders", 2)]
    assert broker.queues[dead][0].properties["RETRY_TOPIC"] == "orders"
    lines = [record for record in caplog.records if "listener failed" in record.message]
    assert len(lines) == 3
    assert "group billing" in lines[0].message
    assert "ValueError: no such customer" in lines[0].message
    assert sum(1 for line in lines if line.exc_info) == 2  # once per topic it was read from


async def test_a_retry_is_consumed_by_the_member_that_owns_the_retry_queue(
    broker: MemoryBroker, members: Members
) -> None:
    seen: list[tuple[str, int]] = []

    def listener(name: str) -> Callable[[Message], Awaitable[None]]:
        async def listen(message: Message) -> None:
            seen.append((name, message.reconsume_times))
            if not message.reconsume_times:
                raise Later

        return listen

    first, second = await members.start(listener("first")), await members.start(listener("second"))
    await eventually(lambda: len(order_queues(first)) == len(order_queues(second)) == 4)
    await eventually(lambda: sum(queue.topic == RETRY for one in (first, second) for queue in one.queues) == 1)
    owner, other = ("first", second) if any(queue.topic == RETRY for queue in first.queues) else ("second", first)
    broker.put("orders", b"bad", queue_id=order_queues(other)[0])
    await eventually(lambda: len(seen) == 2)
    assert seen == [("second" if owner == "first" else "first", 0), (owner, 1)]


async def test_why_a_message_failed_is_told_to_nobody_when_that_is_off(broker: MemoryBroker, members: Members) -> None:
    seen: list[int] = []

    async def listen(message: Message) -> None:
        seen.append(message.reconsume_times)
        if not message.reconsume_times:
            raise ValueError("secret")

    broker.put("orders", b"bad", queue_id=0)
    member = await members.start(listen, keeps_failure_texts=False)
    await eventually(lambda: seen == [0, 1])
    [fields] = [fields for code, fields in broker.seen if code == RequestCode.CONSUMER_SEND_MSG_BACK]
    assert "secret" not in str(fields)
    assert "secret" not in str(member.running_info())


async def test_a_listener_that_says_later_leaves_one_line_and_no_traceback(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    async def listen(message: Message) -> None:
        raise Later("the mail server is busy")

    broker.put("orders", b"order", queue_id=0)
    with caplog.at_level(logging.INFO):
        await members.start(listen, max_reconsume_times=1)
        await eventually(lambda: broker.queues.get(MessageQueue(DLQ, "memory", 0)))
    lines = [record for record in caplog.records if "busy" in record.getMessage()]
    assert [record.levelname for record in lines] == ["INFO", "INFO"]
    assert not any(record.exc_info for record in lines)


async def test_a_failure_that_the_declaration_names_leaves_one_line_and_no_traceback(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    async def listen(message: Message) -> None:
        raise KeyError("customer")

    broker.put("orders", b"order", queue_id=0)
    broker.holds_retries = True
    await members.start(listen, failures=FailurePolicy(dead_letter_on=(LookupError,)))
    await eventually(lambda: broker.held_retries)
    (line,) = [record for record in caplog.records if "listener failed" in record.message]
    assert "KeyError: 'customer'" in line.message
    assert not line.exc_info


async def test_a_failed_message_does_not_hold_up_progress_once_a_broker_has_it(
    broker: MemoryBroker, members: Members
) -> None:
    broker.holds_retries = True

    async def listen(message: Message) -> None:
        if message.body == b"0":
            raise ValueError

    broker.put("orders", *[f"{number}".encode() for number in range(10)], queue_id=3)
    member = await members.start(listen)
    await eventually(lambda: broker.held_retries)
    await members.stop(member)
    assert broker.offsets[GROUP, MessageQueue("orders", "memory", 3)] == 10


async def test_a_message_that_the_broker_does_not_take_back_goes_to_the_retry_topic_as_a_copy(
    broker: MemoryBroker, members: Members
) -> None:
    broker.faults[RequestCode.CONSUMER_SEND_MSG_BACK] = lambda request: response(
        request, ResponseCode.SYSTEM_ERROR, "look message by offset failed, 0"
    )
    seen: list[tuple[str, int]] = []

    async def listen(message: Message) -> None:
        seen.append((message.topic, message.reconsume_times))
        if not message.reconsume_times:
            raise ValueError

    broker.put("orders", b"bad", tags="paid", queue_id=0)
    await members.start(listen)
    await eventually(lambda: len(seen) == 2)
    assert seen == [("orders", 0), ("orders", 1)]
    copy = broker.queues[MessageQueue(RETRY, "memory", 0)][0]
    assert copy.properties["RETRY_TOPIC"] == "orders"
    assert copy.properties["DELAY"] == "3"
    assert copy.tags == "paid"


async def test_a_message_that_nobody_takes_back_is_consumed_again_here_and_holds_up_progress(
    broker: MemoryBroker, members: Members
) -> None:
    for code in (RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2):
        broker.faults[code] = lambda request: response(request, ResponseCode.MESSAGE_ILLEGAL, "no")
    seen: list[int] = []
    queue = MessageQueue("orders", "memory", 0)
    fails = True

    async def listen(message: Message) -> None:
        if message.body == b"bad":
            seen.append(message.reconsume_times)
            if fails:
                raise ValueError

    broker.put("orders", b"bad", *[b"good"] * 9, queue_id=0)
    member = await members.start(listen, concurrent=ConcurrentLimits(local_retry_after_s=0.1))
    await eventually(lambda: len(seen) >= 3)
    assert seen[:3] == [0, 1, 2]
    assert member.running_info().queues[queue].commit_offset == 0
    fails = False
    await eventually(lambda: member.running_info().queues[queue].commit_offset == 10)


async def test_filtered_messages_are_not_seen_and_do_not_hold_up_progress(
    broker: MemoryBroker, members: Members
) -> None:
    bodies: list[bytes] = []
    broker.put("orders", *[b"no"] * 100, tags="created", queue_id=0)
    broker.put("orders", b"collides", tags="BB", queue_id=0)
    broker.put("orders", b"yes", tags="Aa", queue_id=0)
    broker.put("orders", *[b"no"] * 100, tags="created", queue_id=0)
    member = await members.start(listener_into(bodies), tags="Aa || refunded")
    queue = MessageQueue("orders", "memory", 0)
    await eventually(lambda: queue in member.queues and member.running_info().queues[queue].commit_offset == 202)
    assert bodies == [b"yes"]


async def test_a_queue_whose_offset_is_gone_goes_on_where_the_broker_says(
    broker: MemoryBroker, members: Members
) -> None:
    bodies: list[bytes] = []
    queue = MessageQueue("orders", "memory", 0)
    broker.first_offsets[queue] = 500
    broker.put("orders", b"a", b"b", queue_id=0)
    broker.offsets[GROUP, queue] = 17
    member = await members.start(listener_into(bodies))
    await eventually(lambda: bodies == [b"a", b"b"])
    await members.stop(member)
    assert broker.offsets[GROUP, queue] == 502


@pytest.mark.parametrize(
    "code", [ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED]
)
@pytest.mark.slow
async def test_a_broker_that_answers_at_once_and_nothing_new_is_not_asked_without_pause(
    broker: MemoryBroker, members: Members, code: int
) -> None:
    pulls = 0

    def same_again(request: Command) -> Command:
        nonlocal pulls
        pulls += 1
        fields = {"suggestWhichBrokerId": "0", "minOffset": "0", "maxOffset": "0"}
        return response(request, code, ext_fields={**fields, "nextBeginOffset": request.ext_fields["queueOffset"]})

    broker.faults[RequestCode.PULL_MESSAGE] = same_again
    member = await members.start(listener_into([]))
    await eventually(lambda: len(order_queues(member)) == 8 and pulls >= 8)
    loop = asyncio.get_running_loop()
    pulls, began_s = 0, loop.time()
    await asyncio.sleep(0.5)
    # What took so long to answer that it needs no pause is no spin either.
    pauses = (loop.time() - began_s) / min(SPIN_PAUSE_S, SPIN_ANSWER_MS / 1000)
    assert pulls <= 8 * (1 + pauses)


@pytest.mark.slow
async def test_a_member_that_the_broker_forgot_sends_a_heartbeat_and_goes_on(
    broker: MemoryBroker, members: Members
) -> None:
    bodies: list[bytes] = []
    member = await members.start(listener_into(bodies))
    await eventually(lambda: len(order_queues(member)) == 8)
    broker.subscriptions.clear()
    connection = broker.members[GROUP].pop(member.client_id)
    connection.abort()
    await eventually(lambda: broker.owners("orders") == 0)
    broker.put("orders", b"x")
    await eventually(lambda: bodies == [b"x"], AT_ONCE_S)
    assert member.client_id in broker.members[GROUP]


async def test_a_topic_that_does_not_exist_yet_is_consumed_when_it_appears(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    broker.queues.clear()
    bodies: list[bytes] = []
    member = await members.start(listener_into(bodies))
    await eventually(lambda: member.client_id in broker.members[GROUP])
    await eventually(lambda: "waits for topic 'orders'" in caplog.text)
    broker.create_topic("orders", 2)
    broker.put("orders", b"x")
    await eventually(lambda: bodies == [b"x"], AT_ONCE_S)


async def test_a_member_keeps_trying_while_no_broker_answers(caplog: pytest.LogCaptureFixture) -> None:
    member = PushConsumer(ConsumerConfig("127.0.0.1:1", GROUP), {"orders": Listener("orders", print)})
    await member.start()
    await eventually(lambda: "no name server answers" in caplog.text)
    await asyncio.wait_for(member.stop(), 60)


async def test_pulling_pauses_while_too_much_waits_and_goes_on_when_there_is_room(
    broker: MemoryBroker, members: Members
) -> None:
    may_end = asyncio.Event()
    count = 0

    async def listen(message: Message) -> None:
        nonlocal count
        await may_end.wait()
        count += 1

    broker.put("orders", *[b"x"] * 3000, queue_id=0)
    member = await members.start(listen)
    queue = MessageQueue("orders", "memory", 0)

    def cached() -> int:
        return member.running_info().queues[queue].cached_msg_count if queue in member.queues else 0

    await eventually(lambda: cached() > 1000)
    await asyncio.sleep(0.2)
    assert cached() <= 1032
    may_end.set()
    await eventually(lambda: count == 3000)


async def test_an_overdue_message_is_sent_back_and_its_late_result_is_ignored(
    broker: MemoryBroker, members: Members, caplog: pytest.LogCaptureFixture
) -> None:
    broker.holds_retries = True
    may_end = asyncio.Event()

    async def listen(message: Message) -> None:
        await may_end.wait()

    broker.put("orders", b"slow", queue_id=0)
    limits = ConcurrentLimits(consume_timeout_ms=10, overdue_scan_interval_s=0.05)
    member = await members.start(listen, concurrent=limits)
    queue = MessageQueue("orders", "memory", 0)
    await eventually(lambda: broker.held_retries)
    await eventually(lambda: member.running_info().queues[queue].commit_offset == 1)
    with caplog.at_level(logging.INFO):
        may_end.set()
        await eventually(lambda: "ended too late: sent back meanwhile" in caplog.text)


async def test_a_member_answers_what_brokers_ask(broker: MemoryBroker, members: Members) -> None:
    bodies: list[bytes] = []
    broker.put("orders", *[b"x"] * 16)
    member = await members.start(listener_into(bodies))
    await eventually(lambda: len(bodies) == 16)
    fields = {"consumerGroup": GROUP, "clientId": member.client_id}
    answer = await broker.ask_member(
        GROUP, member.client_id, Command(code=RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields=fields)
    )
    info = read_running_info(answer.body)
    assert {subscription.topic for subscription in info.subscriptions} == {"orders", RETRY}
    assert info.queues[MessageQueue("orders", "memory", 5)].commit_offset == 2
    assert info.statuses["orders"].consume_ok_tps == pytest.approx(16 / 60)
    assert info.properties["PROP_CONSUMEORDERLY"] == "false"
    unknown = await broker.ask_member(GROUP, member.client_id, Command(code=9999))
    assert unknown.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


async def test_an_operator_can_reset_the_progress_of_a_running_member(broker: MemoryBroker, members: Members) -> None:
    bodies: list[bytes] = []
    broker.put("orders", b"a", b"b", b"c", queue_id=0)
    member = await members.start(listener_into(bodies))
    await eventually(lambda: len(bodies) == 3)
    body = b'{"offsetTable":{{"brokerName":"memory","queueId":0,"topic":"orders"}:1}}'
    fields = {"topic": "orders", "group": GROUP, "timestamp": "0", "isForce": "true"}
    request = Command(code=RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ext_fields=fields, body=body)
    await broker.ask_member(GROUP, member.client_id, request)
    await eventually(lambda: bodies[3:] == [b"b", b"c"])


async def test_a_group_with_a_stored_offset_ignores_where_it_should_start(
    broker: MemoryBroker, members: Members
) -> None:
    bodies: list[bytes] = []
    queue = MessageQueue("orders", "memory", 0)
    broker.put("orders", b"a", b"b", queue_id=0)
    broker.offsets[GROUP, queue] = 1
    await members.start(listener_into(bodies), start=start_rule("last"))
    await eventually(lambda: bodies == [b"b"])


async def test_a_consumer_cannot_be_started_twice(broker: MemoryBroker, members: Members) -> None:
    member = await members.start(listener_into([]))
    with pytest.raises(RuntimeError, match="started before"):
        await member.start()
