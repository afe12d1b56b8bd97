"""Every operation of the description, asked with what it says and with what it does not say.

Whatever is sent: no mistake of ours, and no answer that the description does not have. The application is the one that
uvicorn serves, with rows in its database and brokers that answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from django.contrib.auth.models import AbstractUser
from django.core.asgi import get_asgi_application
from django_celery_beat.models import CrontabSchedule, PeriodicTask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi import checks

from mqadmin.api import throttles
from mqadmin.jobs import tasks
from mqadmin.ownership.models import Ownership
from mqadmin.tokens import guesses
from mqadmin.tokens.models import ApiToken, digest_of, new_secret
from remoting.wire.codes import RequestCode
from tests.support import console_rows as seed
from tests.support.topic_brokers import TopicBrokers

pytestmark = [pytest.mark.journey, pytest.mark.django_db(transaction=True), pytest.mark.timeout(1800)]

EXAMPLES = 12
# No further operation is begun afterwards; each was asked something before, in the first round.
ENDS_AFTER_S = 100
ANSWERS_WITHIN_S = 120
KEPT = Path(__file__).parents[3] / "docs" / "openapi.yaml"
CLIENT = "10.0.3.7@2211#1"
KNOWN = {
    "cluster": "prod",
    "topic": "orders",
    "group": "billing",
    "broker": "broker-a",
    "problem": "stale",
    "person": "ann",
    "job": "nightly",
    "number": 1,
}

CHECKS: list[CheckFunction] = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture
def brokers() -> Iterator[TopicBrokers]:
    with TopicBrokers("broker-a", "broker-b") as brokers:
        yield brokers


@pytest.fixture
def filled(brokers: TopicBrokers, ann: AbstractUser, now: datetime, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rows of everything; returns the secret of a token that may do everything."""
    for limits, name in ((throttles, "READS_PER_MIN"), (throttles, "WRITES_PER_MIN"), (guesses, "FAILURES_PER_MIN")):
        monkeypatch.setattr(limits, name, 10**9)
    cluster = seed.make_cluster("prod", now=now, namesrv=brokers.namesrv)
    for name, broker in brokers.brokers.items():
        seed.make_broker(cluster, name, now=now, address=broker.server.address)
        broker.server.succeed(RequestCode.GET_BROKER_CONFIG, b"fileReservedTime=48\n")
    seed.make_topic(cluster, "orders", now=now)
    group = seed.make_group(cluster, "billing", now=now, lag=12, behind_since=now - timedelta(minutes=1))
    seed.make_group(cluster, "new", now=now, verdict="unknown", lag=None, in_per_s=None, offsets_seen_at=None)
    seed.make_member(group, CLIENT, now=now, differences=[seed.make_difference("orders", None, since=now)])
    seed.make_member(group, "gone", now=now, left_at=now)
    seed.make_queue_offset(group, "orders", 0, now=now, owner=CLIENT, lag=12)
    seed.make_subscription(group, "orders", "paid", now=now)
    seed.make_event(group, "joined", at=now, client_id=CLIENT, member_count=1)
    Ownership.objects.create(cluster=cluster, kind="topic", name="orders", owner="shop")
    values = {"action": "describe_topic", "identity": "ann", "cluster": "prod", "arguments": {"topic": "orders"}}
    at_three = CrontabSchedule.objects.create(minute="0", hour="3")
    PeriodicTask.objects.create(name="nightly", task=tasks.NAME, crontab=at_three, kwargs=json.dumps(values))
    tasks.run_action(**values, job="nightly", key="the last time")
    secret = new_secret()
    ends = now + timedelta(days=1)
    ApiToken.objects.create(person=ann, name="all", digest=digest_of(secret), role="admin", expires_at=ends)
    return secret


def test_every_operation_keeps_to_its_description_whatever_it_is_asked(filled: str) -> None:
    headers = {"Authorization": f"Bearer {filled}"}
    described = schemathesis.openapi.from_dict(yaml.safe_load(KEPT.read_text(encoding="utf-8")))
    described.app = get_asgi_application()
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 20
    began = time.monotonic()
    for examples in (2, EXAMPLES - 2):
        for operation in operations:
            if examples == 2 or time.monotonic() - began < ENDS_AFTER_S:
                _ask(operation, headers, examples)


def _ask(operation: Any, headers: dict[str, str], examples: int) -> None:
    known = {name: value for name, value in KNOWN.items() if f"{{{name}}}" in operation.path}
    asked = [operation.as_strategy(path_parameters=known or None), operation.as_strategy()]
    if operation.body or operation.query:
        asked.append(operation.as_strategy(schemathesis.GenerationMode.NEGATIVE))

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=st.one_of(asked))
    def ask(case: Any) -> None:
        answer = case.call(headers=headers, timeout=ANSWERS_WITHIN_S)
        assert answer.status_code != 500, f"{case.as_curl_command()}\n{answer.text}"
        case.validate_response(answer, checks=CHECKS)

    ask()
