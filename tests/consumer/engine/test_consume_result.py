from __future__ import annotations

import pytest

from consumer.engine.consume_result import ConsumeResult, result_of
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.workers import ListenerReport
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage


@pytest.mark.parametrize(
    ("error", "fate", "outcome"),
    [
        pytest.param(None, "held", ConsumeResult.SUCCESS, id="it returned"),
        pytest.param(ValueError(), "held", ConsumeResult.RECONSUME_LATER, id="it raised"),
        pytest.param(SystemExit(1), "held", ConsumeResult.RECONSUME_LATER, id="it wanted to end the process"),
        pytest.param(None, "dropped", ConsumeResult.NOT_OWNED, id="it returned but the queue is another's"),
        pytest.param(ValueError(), "dropped", ConsumeResult.NOT_OWNED, id="it raised but the queue is another's"),
        pytest.param(None, "removed", ConsumeResult.NOT_OWNED, id="it returned after it was sent back as overdue"),
        pytest.param(None, "skipped", ConsumeResult.NOT_OWNED, id="it was never called"),
    ],
)
def test_what_becomes_of_a_message(error: BaseException | None, fate: str, outcome: ConsumeResult) -> None:
    process_queue = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0)
    cached = process_queue.put([StoredMessage(topic="orders", queue_id=0)], 1)[0]
    if fate == "dropped":
        process_queue.drop()
    elif fate == "removed":
        process_queue.remove(cached)
    assert result_of(ListenerReport(cached, error, is_skipped=fate == "skipped")) is outcome
