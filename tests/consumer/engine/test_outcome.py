from __future__ import annotations

import pytest

from consumer.engine.outcome import Outcome, outcome_of
from consumer.engine.process_queue import ProcessQueue
from consumer.engine.workers import Report
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.stored_message import StoredMessage


@pytest.mark.parametrize(
    ("error", "fate", "outcome"),
    [
        pytest.param(None, "held", Outcome.CONSUMED, id="it returned"),
        pytest.param(ValueError(), "held", Outcome.LATER, id="it raised"),
        pytest.param(SystemExit(1), "held", Outcome.LATER, id="it wanted to end the process"),
        pytest.param(None, "dropped", Outcome.IGNORED, id="it returned but the queue is another's"),
        pytest.param(ValueError(), "dropped", Outcome.IGNORED, id="it raised but the queue is another's"),
        pytest.param(None, "removed", Outcome.IGNORED, id="it returned after it was sent back as overdue"),
        pytest.param(None, "skipped", Outcome.IGNORED, id="it was never called"),
    ],
)
def test_what_becomes_of_a_message(error: BaseException | None, fate: str, outcome: Outcome) -> None:
    process_queue = ProcessQueue(MessageQueue("orders", "broker-a", 0), 0)
    cached = process_queue.put([StoredMessage(topic="orders", queue_id=0)], 1)[0]
    if fate == "dropped":
        process_queue.drop()
    elif fate == "removed":
        process_queue.remove(cached)
    assert outcome_of(Report(cached, error, is_skipped=fate == "skipped")) is outcome
