"""WATCH: answers of several pages are kept until their last page, and no longer than their connection."""

from __future__ import annotations

import pytest

from broker.engine.processors.watch import WatchRequest
from broker.engine.serving.requests import Request
from broker.engine.watch.watch import Watch
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.errors import MessageError
from tests.support.broker_parts import Wire
from tests.support.stores import ManualClock


class EndlessStates:
    """Snapshots that always have one more page."""

    def snapshot(self) -> EndlessStates:
        return self

    def next(self) -> tuple[WatchBody, bool]:
        return WatchBody(now_ms=0, cluster="c", broker_name="b", broker_addr="b:1", version=0), True


def page(processor: WatchRequest, wire: Wire, number: int | None = None) -> int:
    fields = {"page": str(number)} if number is not None else {}
    answer = processor(Request(Command(code=RequestCode.WATCH, ext_fields=fields), wire))
    return int(answer.ext_fields["nextPage"])


async def test_unfinished_answers_are_bounded_and_end_with_their_connection():
    processor = WatchRequest(Watch(ManualClock()), EndlessStates(), unfinished_max=2)
    oldest, second, third = (Wire() for _ in range(3))
    for wire in (oldest, second, third):
        assert page(processor, wire) == 1
    with pytest.raises(MessageError, match="ask for everything anew"):
        page(processor, oldest, 1)
    assert page(processor, second, 1) == 2
    processor.connection_lost(third)
    with pytest.raises(MessageError, match="ask for everything anew"):
        page(processor, third, 1)
    assert page(processor, second, 2) == 3
