"""Which next messages are read for their store time."""

from __future__ import annotations

from mqadmin.observing.exact_waiting import (
    UNREADABLE_MAX,
    NextMessage,
    Unreadable,
    readable,
    remembered,
    to_read,
    waiting_messages,
)
from mqadmin.observing.gateway import BrokerTables, QueuePlace
from mqadmin.observing.turns import Urgent
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import TopicOffset

QUEUE = MessageQueue("orders", "broker-a", 0)


def next_of(group: str, committed_offset: int = 5, queue_id: int = 0) -> NextMessage:
    return NextMessage(group, QUEUE._replace(queue_id=queue_id), committed_offset)


def groups(read: list[NextMessage]) -> list[str]:
    return [one.group for one in read]


def test_the_most_urgent_come_first_and_no_more_than_the_share_allows() -> None:
    waiting = [next_of(name) for name in ("c", "b", "a", "nobody-asks")]
    assert groups(to_read(waiting, Urgent(("a", "b", "c")), [], 2)) == ["a", "b"]


def test_what_is_known_is_not_read_again_until_the_offset_moves() -> None:
    assert to_read([next_of("a")], Urgent(("a",)), [next_of("a")], 9) == []
    assert groups(to_read([next_of("a", 6)], Urgent(("a",)), [next_of("a")], 9)) == ["a"]


def test_what_has_no_store_time_is_not_read_by_any_group_until_its_offset_moves() -> None:
    waiting = {
        next_of(group, offset): QueuePlace("10.0.0.1:1", "orders", 0, offset)
        for group, offset in (("a", 5), ("b", 5), ("c", 6))
    }
    assert groups(list(readable(waiting, [Unreadable(QUEUE, 5)]))) == ["c"]


def test_of_messages_without_store_time_the_latest_are_remembered() -> None:
    many = [Unreadable(QUEUE, number) for number in range(UNREADABLE_MAX)]
    further = Unreadable(QUEUE, UNREADABLE_MAX)
    assert remembered(many, [further, many[-1]]) == (*many[1:], further)


def test_groups_that_move_do_not_take_all_turns_from_those_of_which_nothing_is_known() -> None:
    waiting = [next_of("seen", 6), next_of("moves", 6), next_of("new")]
    known = [next_of("seen"), next_of("moves")]
    urgent = Urgent(("seen", "moves", "new"), looked_at_count=1)
    assert groups(to_read(waiting, urgent, known, 9)) == ["seen", "new", "moves"]


def test_waits_what_lies_between_the_committed_offset_and_the_end_of_a_queue_that_was_asked_for() -> None:
    ends = {
        QUEUE: TopicOffset(min_offset=0, max_offset=9),
        QUEUE._replace(queue_id=1): TopicOffset(min_offset=0, max_offset=5),
        QUEUE._replace(queue_id=2): TopicOffset(min_offset=7, max_offset=9),
    }
    committed = {("orders", "a"): dict.fromkeys(range(4), 5), ("orders", "b"): {0: 5}}
    tables = {"10.0.0.1:1": BrokerTables({}, {}, committed)}
    assert dict(waiting_messages({"10.0.0.1:1": "broker-a"}, tables, ends, {"a"})) == {
        next_of("a"): QueuePlace("10.0.0.1:1", "orders", 0, 5),
        next_of("a", queue_id=2): QueuePlace("10.0.0.1:1", "orders", 2, 7),
    }
