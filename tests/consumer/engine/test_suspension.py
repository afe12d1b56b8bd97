"""A member that stands still, and goes on."""

from __future__ import annotations

import asyncio

from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_members import Members, listener_into, order_queues
from tests.support.waiting import eventually


async def test_a_suspended_member_keeps_its_queues_and_pulls_again_when_the_last_reason_is_gone(
    broker: MemoryBroker, members: Members
) -> None:
    bodies: list[bytes] = []
    member = await members.start(listener_into(bodies))
    await eventually(lambda: broker.owners("orders") == 8)
    member.suspend("the shop is closed")
    member.suspend("the mail server is away")
    assert member.suspended == ("the shop is closed", "the mail server is away")
    broker.put("orders", *[b"held"] * 8)  # the pulls that are held bring these, and they are consumed
    await eventually(lambda: len(bodies) == 8)
    pulls = count_pulls(broker)
    broker.put("orders", *[b"later"] * 8)
    member.resume("the shop is closed")
    member.resume("never given")
    await asyncio.sleep(0.1)
    assert (len(bodies), pulls, order_queues(member)) == (8, [], list(range(8)))
    member.resume("the mail server is away")
    await eventually(lambda: len(bodies) == 16)
    assert member.suspended == ()


async def test_a_suspended_member_shares_its_queues_with_one_that_joins(broker: MemoryBroker, members: Members) -> None:
    """Else its commits would undo those of the new owner."""
    bodies: list[bytes] = []
    first = await members.start(listener_into([]))
    await eventually(lambda: len(order_queues(first)) == 8)
    first.suspend()
    second = await members.start(listener_into(bodies))
    await eventually(lambda: len(order_queues(first)) == len(order_queues(second)) == 4)


async def test_a_suspended_member_can_be_stopped(broker: MemoryBroker, members: Members) -> None:
    member = await members.start(listener_into([]))
    await eventually(lambda: len(order_queues(member)) == 8)
    member.suspend()
    await asyncio.wait_for(members.stop(member), 60)


def count_pulls(broker: MemoryBroker) -> list[Command]:
    """Returns a list that fills with the pulls of `orders` from now on."""
    pulls: list[Command] = []

    def note(request: Command) -> None:
        if request.ext_fields["topic"] == "orders":
            pulls.append(request)

    broker.faults[RequestCode.PULL_MESSAGE] = note
    return pulls
