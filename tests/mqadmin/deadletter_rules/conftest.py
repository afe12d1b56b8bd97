"""A cluster, a rule of ann's, and a replay action that only notes what it was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

import pytest
from django import forms
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from mqadmin.action_runs import runner
from mqadmin.actions import registry
from mqadmin.actions.declaration import Action, ActionUnavailable, Change, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.deadletter_rules.models import DeadLetterRule
from mqadmin.deadletters.models import DeadLetter
from remoting.wire.properties import Property
from tests.support import console_rows as seed
from tests.support.callers import caller
from tests.support.dead_letter_brokers import dead_message

TIMEOUT = {Property.FAILURE_CLASS: "PaymentTimeout", Property.FAILURE_TEXT: "no answer after 30 s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    group: Annotated[str, forms.CharField()]
    target: Annotated[str, forms.CharField()]
    rate: Annotated[int, forms.IntegerField()]
    ids: Annotated[str, forms.CharField()]


@dataclass
class Replays:
    """What was asked for. `error` is raised by the preview; `dies` is raised when it is carried out."""

    ids: list[list[int]] = field(default_factory=list)
    error: Exception | None = None
    dies: BaseException | None = None
    number: int = 0

    def preview(self, _: Cluster, arguments: Replay) -> Preview[None]:
        if self.error is not None:
            raise self.error
        return Preview((Change("", {}, {"replay": self.number}),), None)

    def carry_out(self, _: Cluster, arguments: Replay, found: Preview[None]) -> Iterator[ItemOutcome]:
        self.ids.append([int(one) for one in arguments.ids.split()])
        if self.dies is not None:
            raise self.dies
        yield found.changes[0].done()

    def go_away(self) -> None:
        self.error = ActionUnavailable("nobody answers")


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def prod(db: Any, now: datetime) -> Cluster:
    prod = seed.make_cluster("prod", now=now)
    seed.make_broker(prod, now=now)
    return prod


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> Replays:
    replays = Replays()
    action = Action(
        name="start_replay",
        title="Replay",
        permission="mq_deadletters.change_deadletter",
        arguments=Replay,
        subject="group",
        preview=replays.preview,
        carry_out=replays.carry_out,
    )
    monkeypatch.setitem(registry.ACTIONS, "start_replay", action)
    return replays


@pytest.fixture
def make_rule(prod: Cluster, ann: AbstractUser) -> Any:
    """Makes a rule as people do, and lets it run."""

    def make(**values: Any) -> DeadLetterRule:
        said = {"rule": "timeouts", "group": "billing", "does": "replay", "after_minutes": 10, "rate": 5, **values}
        assert runner.run(caller(ann), "make_rule", "prod", said).outcome == "done"  # type: ignore[union-attr]
        runner.run(caller(ann), "set_rule_running", "prod", {"rule": said["rule"], "running": "yes"})
        return DeadLetterRule.objects.select_related("cluster").get(name=said["rule"])

    return make


def die(prod: Cluster, offset: int, died_at: datetime, **fields: Any) -> DeadLetter:
    """Indexes a dead letter that died at that moment."""
    message = dead_message(
        offset, store_timestamp_ms=int(died_at.timestamp() * 1000), **{"properties": TIMEOUT, **fields}
    )
    seed.make_dead_letters(prod, "billing", [message], now=died_at)
    return DeadLetter.objects.order_by("-pk")[0]


def later(now: datetime, minutes: float) -> datetime:
    return now + timedelta(minutes=minutes)
