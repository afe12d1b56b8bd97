"""The page of rules, and what a rule raises on the overview."""

from __future__ import annotations

import pytest
from django.utils import timezone

from mqadmin.deadletter_rules.models import DeadLetterRule, RaisedFailure
from mqadmin.deadletters.models import Failure
from remoting.wire.properties import Property
from tests.mqadmin.console.pages import text_of
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

URL = "/clusters/local/deadletters/rules/"


@pytest.fixture
def rule(cluster, group, now):
    messages = [dead_message(0, properties={Property.FAILURE_CLASS: "PaymentTimeout<b>"})]
    seed.make_dead_letters(cluster, "billing", messages, now=now)
    return DeadLetterRule.objects.create(
        cluster=cluster,
        name="timeouts",
        group_name="billing",
        does="replay",
        identity=Failure.objects.get().identity,
        after_minutes=10,
        times_max=3,
        from_hour=22,
        to_hour=6,
        acts_for="ann",
        made_at=timezone.now(),
        last_words="waits for its hours",
    )


def test_a_link_to_the_form_says_some_of_it_and_the_rest_is_no_error_yet(http, cluster):
    form = "/clusters/local/deadletters/rules/make/"
    page = http.get(f"{form}?group=billing")
    assert 'name="group" value="billing"' in page.content.decode()
    assert "This field is required" not in page.content.decode()
    assert "This field is required" in http.get(f"{form}?group=billing&rule=").content.decode()


def test_a_rule_says_what_it_is_about_how_and_what_it_did_last(http, rule):
    text = text_of(http.get(URL))
    for words in (
        "PaymentTimeout<b>",
        "after 10 minutes",
        "3 times a message at most",
        "from 22 to 6",
        "waits for its",
    ):
        assert words in text
    assert "PAUSED" in text


def test_a_cluster_without_rules_says_what_one_does(http, cluster):
    assert "No rule yet" in text_of(http.get(URL))


def test_the_form_starts_at_the_failure(http, rule):
    failure = Failure.objects.get()
    page = http.get(f"{URL}make/", {"group": "billing", "failure": failure.pk})
    assert page.context["form"]["failure"].value() == str(failure.pk)


def test_a_raised_failure_stands_on_the_overview_until_it_is_archived(http, rule, now):
    failure = Failure.objects.get()
    RaisedFailure.objects.create(rule=rule, failure=failure, raised_at=now, last_at=now, dead_count=7)
    for page in ("/", "/clusters/local/"):
        text = text_of(http.get(page))
        assert "RAISED" in text
        assert "PaymentTimeout<b> (timeouts)" in text
        assert "7 died" in text
    Failure.objects.update(archived_at=now)
    assert "RAISED" not in text_of(http.get("/", headers={"cache-control": "no-cache"}))
