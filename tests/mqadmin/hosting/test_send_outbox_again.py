from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from consumer.outbox.models import OutboxMessage, OutboxState
from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.audit.models import Outcome
from tests.support.callers import caller
from tests.support.outbox_rows import make_outbox_message

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rows() -> None:
    for message_id, state in (("A1", OutboxState.FAILED), ("A2", OutboxState.FAILED), ("A3", OutboxState.SENT)):
        make_outbox_message(message_id, now=timezone.now(), state=state, attempts=5)


def send_again(person: AbstractUser, message: str) -> Result:
    result = runner.run(caller(person), "send_outbox_again", "", {"message": message})
    assert isinstance(result, Result)
    return result


def states() -> dict[str, str]:
    return dict(OutboxMessage.objects.values_list("message_id", "state"))


def test_one_that_was_given_up_waits_again(ann: AbstractUser) -> None:
    assert send_again(ann, "A1").outcome == Outcome.DONE
    assert states() == {"A1": "pending", "A2": "failed", "A3": "sent"}
    assert OutboxMessage.objects.get(message_id="A1").attempts == 0


def test_all_that_were_given_up_wait_again_and_then_none_is_left(ann: AbstractUser) -> None:
    preview: Any = runner.preview(caller(ann), "send_outbox_again", "", {"message": "all"})
    (change,) = preview.changes
    assert (change.item, change.before, change.after) == ("default", {"given_up": 2}, {"given_up": 0})
    assert send_again(ann, "all").outcome == Outcome.DONE
    assert states() == {"A1": "pending", "A2": "pending", "A3": "sent"}
    assert send_again(ann, "all").errors["message"] == ["No message was given up."]


@pytest.mark.parametrize("message", ["A3", "A9"])
def test_what_was_not_given_up_is_refused(ann: AbstractUser, message: str) -> None:
    assert send_again(ann, message).errors["message"] == ["No message of this id was given up."]
    assert states()["A3"] == "sent"
