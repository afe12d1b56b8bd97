"""How far a group is on a topic: by the broker's word, and by that of its members."""

from __future__ import annotations

from remoting.wire.bodies.progress import read_group_progress
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.asking import ask


def committed(address: str, group: str, topic: str, queue_count: int) -> int:
    """The sum of the committed offsets; 0 for a queue without one."""
    header = {"consumerGroup": group, "topic": topic}
    asked = [
        Command(code=RequestCode.QUERY_CONSUMER_OFFSET, ext_fields={**header, "queueId": str(queue)})
        for queue in range(queue_count)
    ]
    return sum(int(ask(address, each).ext_fields.get("offset", 0)) for each in asked)


def told_by_members(address: str, group: str, topic: str) -> int:
    """The sum of the offsets that the members would commit now (223); Java's clients tell.

    A message is consumed before its offset counts: a member that is stopped in between commits the older one.
    """
    code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
    answer = ask(address, Command(code=code, ext_fields={"topic": topic, "group": group}))
    if answer.code != ResponseCode.SUCCESS:
        return 0
    return sum(sum(offsets.values()) for offsets in read_group_progress(answer.body).values())


def commit_first(address: str, group: str, topic: str) -> None:
    """Commits 0 on the first queue.

    Of a group's first commits on a topic Apache's broker can lose one of two that come at once, as a member sends them
    when it stops (`ConsumerOffsetManager.commitOffset`).
    """
    fields = {"consumerGroup": group, "topic": topic, "queueId": "0", "commitOffset": "0"}
    answer = ask(address, Command(code=RequestCode.UPDATE_CONSUMER_OFFSET, ext_fields=fields))
    assert answer.code == ResponseCode.SUCCESS, answer
