from __future__ import annotations

import pytest

from mqadmin.subscriptions.queue_moves import moves
from remoting.wire.bodies.message_queue import MessageQueue


def queues(ids: str) -> frozenset[MessageQueue]:
    return frozenset(MessageQueue("orders", "a", int(one)) for one in ids)


CASES = {
    "nothing moved": ({"one": "01"}, {"one": "01"}, []),
    "both were asked": ({"one": "01", "two": ""}, {"one": "0", "two": "1"}, [(1, "one", "two")]),
    "the new holder was asked first": ({"one": "01", "two": ""}, {"two": "1"}, [(1, "one", "two")]),
    "the old holder, of whom that was told, was asked after that": ({"one": "0", "two": "1"}, {"one": "0"}, []),
    "the old holder was asked first": ({"one": "01", "two": ""}, {"one": "0"}, [(1, "one", "")]),
    "a new member takes from an old one": ({"one": "01"}, {"one": "0", "two": "1"}, [(1, "one", "two")]),
    "the first word of all members": ({}, {"one": "01", "two": "23"}, []),
    "two say that they hold it": ({"one": "0", "two": ""}, {"one": "0", "two": "0"}, []),
    "a new member says that it holds it, too": ({"one": "01"}, {"one": "01", "two": "1"}, []),
    "the first of two lets it go": ({"one": "01", "two": "1"}, {"one": "0", "two": "1"}, [(1, "one", "two")]),
    "the first of two lets it go, the other was not asked": (
        {"one": "01", "two": "1"},
        {"one": "0"},
        [(1, "one", "two")],
    ),
    "the first of two lets it go to a third": (
        {"one": "01", "two": "1", "three": ""},
        {"one": "0", "two": "", "three": "1"},
        [(1, "one", "three")],
    ),
    "the first of two lets it go to a third, the other was not asked": (
        {"one": "01", "two": "1"},
        {"one": "0", "new": "1"},
        [(1, "one", "new")],
    ),
    "the first of two has left": ({"gone": "01", "two": "1"}, {"two": "1"}, [(1, "gone", "two")]),
    "one has left, nobody has its queue yet": ({"gone": "01", "two": "2"}, {"two": "2"}, []),
    "a queue of somebody who left": ({"gone": "1", "one": "0"}, {"one": "01"}, [(1, "gone", "one")]),
    "the first word of one that joined, of a queue that was let go": ({"one": "0"}, {"new": "1"}, [(1, "", "new")]),
    "a queue that nobody had": ({"one": "0"}, {"one": "01"}, [(1, "", "one")]),
}


@pytest.mark.parametrize(("before", "told", "expected"), CASES.values(), ids=CASES.keys())
def test_each_move_is_told_once(
    before: dict[str, str], told: dict[str, str], expected: list[tuple[int, str, str]]
) -> None:
    holding, holds_now = ({one: queues(ids) for one, ids in said.items()} for said in (before, told))
    found = moves(holding, holds_now, left={"gone"}, joined={"new"})
    assert [(move.queue.queue_id, move.from_client, move.to_client) for move in found] == expected
