"""Attributes of topics: what may be said, and what is refused with the reason."""

from __future__ import annotations

import pytest

from broker.engine.topics.topic_attributes import CHANGE_CHARS_MAX, alter_attributes
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError

KNOWN = {"message.type": "NORMAL", "reserve.time": "5"}


@pytest.mark.parametrize(
    ("known", "change", "expected"),
    [
        ({}, "", {}),
        (KNOWN, "", KNOWN),
        ({}, "+message.type=FIFO,+queue.type=SimpleCQ", {"message.type": "FIFO", "queue.type": "SimpleCQ"}),
        (KNOWN, "+message.type=DELAY", {"message.type": "DELAY", "reserve.time": "5"}),
        (KNOWN, "-reserve.time,+message.type=FIFO", {"message.type": "FIFO"}),
        ({}, "+reserve.time=-1", {"reserve.time": "-1"}),
    ],
)
def test_a_change_sets_and_takes_away(known, change, expected) -> None:
    assert alter_attributes(known, change, is_new=not known) == expected


@pytest.mark.parametrize(
    ("known", "change", "code"),
    [
        ({}, "message.type=FIFO", ResponseCode.SYSTEM_ERROR),
        ({}, "+message.type", ResponseCode.SYSTEM_ERROR),
        ({}, "-message.type", ResponseCode.SYSTEM_ERROR),
        ({}, "+=FIFO", ResponseCode.SYSTEM_ERROR),
        ({}, "++message.type=FIFO", ResponseCode.SYSTEM_ERROR),
        ({}, "+message.type=ODD", ResponseCode.SYSTEM_ERROR),
        ({}, "+message.type=MIXED", ResponseCode.INVALID_PARAMETER),
        ({}, "+colour=red", ResponseCode.SYSTEM_ERROR),
        ({}, "+cleanup.policy=COMPACTION", ResponseCode.SYSTEM_ERROR),
        ({}, "+reserve.time=soon", ResponseCode.SYSTEM_ERROR),
        ({}, "+reserve.time=-2", ResponseCode.SYSTEM_ERROR),
        (KNOWN, "+message.type=FIFO,-message.type", ResponseCode.SYSTEM_ERROR),
        (KNOWN, "-cleanup.policy", ResponseCode.SYSTEM_ERROR),
        (KNOWN, "+queue.type=SimpleCQ", ResponseCode.SYSTEM_ERROR),
        ({}, "+" + "x" * CHANGE_CHARS_MAX, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_change_that_cannot_be_is_refused(known, change, code) -> None:
    with pytest.raises(MessageError) as refused:
        alter_attributes(known, change, is_new=not known)
    assert refused.value.response_code == code
