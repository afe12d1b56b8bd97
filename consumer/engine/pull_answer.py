"""What a push consumer makes of an answer to a pull that refuses: the delay until the next try. Pure."""

from __future__ import annotations

from consumer.engine.subscriptions import Subscriptions
from remoting.client import pull_answer
from remoting.client.pull_answer import PullAnswer
from remoting.wire.codes import ResponseCode, response_name
from remoting.wire.command import Command

RETRY_AFTER_MS = 1000
_RETRY_AFTER_MS: dict[int, int] = {ResponseCode.FLOW_CONTROL: 20}
# The broker does not know this member or its subscription; the regular heartbeat would come up to 30 s later.
NEEDS_HEARTBEAT: frozenset[int] = frozenset(
    {
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
        ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
    }
)


class PullRefused(Exception):
    """The broker answered with any other code; the pull may be repeated after `retry_after_ms`."""

    def __init__(self, code: int, remark: str | None) -> None:
        super().__init__(f"{response_name(code)} ({code}): {remark or 'no reason given'}")
        self.code = code
        self.retry_after_ms = _RETRY_AFTER_MS.get(code, RETRY_AFTER_MS)


def accepted_answer(answer: Command, subscriptions: Subscriptions) -> PullAnswer:
    """Raises PullRefused, HeaderError or BodyError."""
    read = pull_answer.read_pull_answer(answer, subscriptions.matches)
    if read is None:
        raise PullRefused(answer.code, answer.remark)
    return read
