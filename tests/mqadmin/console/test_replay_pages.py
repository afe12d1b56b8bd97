"""Replays on pages: the list, one with its counts and its ledger, and the links that lead there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mqadmin.deadletters.models import DeadLetter, Failure
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.states import EntryState, Target
from tests.mqadmin.console.pages import names_in, text_of
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message


@pytest.fixture
def job(cluster, group, now):
    messages = [dead_message(offset, properties={"UNIQ_KEY": f"<b>{offset}</b>"}) for offset in range(3)]
    seed.make_dead_letters(cluster, "billing", messages, now=now)
    job = ReplayJob.objects.create(
        cluster=cluster,
        identity="x",
        group_name="billing",
        until_id=0,
        target=Target.ORIGIN,
        rate_per_s=100,
        stop_percent=5,
        started_by="ada",
        created_at=now,
        total_count=60,
        sent_count=58,
        unknown_count=2,
    )
    dead = list(DeadLetter.objects.order_by("pk"))
    ReplayEntry.objects.bulk_create(
        ReplayEntry(
            job=job,
            dead_letter=dead[number] if number < len(dead) else None,
            message_id=dead[number].message_id if number < len(dead) else f"gone-{number}",
            state=EntryState.UNKNOWN if number < 2 else EntryState.SENT,
            words="the topic was deleted and made anew meanwhile" if number < 2 else "",
            dead_again_id=dead[0].pk if number == 2 else None,
        )
        for number in range(60)
    )
    return job


def test_replays_are_listed_of_a_cluster_and_of_a_group(http, job):
    assert names_in(http.get("/clusters/local/replays/")) == [str(job.pk)]
    assert names_in(http.get("/clusters/local/replays/?group=mail")) == []


def test_a_replay_shows_its_counts_and_its_ledger_page_by_page(http, job):
    page = http.get(f"/clusters/local/replays/{job.pk}/")
    text = text_of(page)
    assert f"Replay {job.pk} of billing" in text
    assert "the original topic, so every group of it" in text
    assert len(names_in(page)) == 50
    assert len(names_in(http.get(f"/clusters/local/replays/{job.pk}/{page.context['older_url']}"))) == 10


def test_a_replay_that_waits_for_approval_says_what_was_selected(http, job, now):
    ReplayJob.objects.update(state="asked", total_count=0, sent_count=0, unknown_count=0, selected_count=12)
    job.entries.all().delete()
    address = f"/clusters/local/replays/{job.pk}/"
    assert "selected all dead letters of the group (12)" in text_of(http.get(address))
    failure = Failure.objects.get()
    said = {
        "failure": failure.pk,
        "text": "order 7",
        "since": (now - timedelta(days=2)).isoformat(),
        "archived": True,
        "role": "viewer",
    }
    ReplayJob.objects.update(selection=said)
    page = http.get(address)
    words = text_of(page)
    assert f"Failure: {failure.pk} · Search: order 7 · Died since: 2 d ago · Those that are archived: yes (12)" in words
    assert f"/clusters/local/deadletters/failures/{failure.pk}/" in page.content.decode()
    assert "The ledger is not written yet" in words
    ReplayJob.objects.update(selection={"ids": [3, 5]})
    assert "Picked: 3 5 (12)" in text_of(http.get(address))


@pytest.mark.parametrize(("state", "count"), [("unknown", 2), ("dead_again", 1), ("refused", 0), ("nonsense", 50)])
def test_a_ledger_is_filtered(http, job, state, count):
    page = http.get(f"/clusters/local/replays/{job.pk}/", {"state": state})
    assert len(names_in(page)) == count
    assert "<b>0</b>" not in page.content.decode()


def test_the_key_by_which_a_message_is_found_is_in_the_ledger_and_on_the_page_of_the_dead_letter(http, job):
    entry = job.entries.get(dead_letter__queue_offset=0)
    shown = f"replay-{job.token}-{entry.pk}</code>"
    assert shown in http.get(f"/clusters/local/replays/{job.pk}/?state=unknown").content.decode()
    assert shown in http.get(f"/clusters/local/deadletters/{entry.dead_letter_id}/").content.decode()
    job.entries.update(state=EntryState.WAITING)
    assert shown not in http.get(f"/clusters/local/replays/{job.pk}/").content.decode()
    assert shown not in http.get(f"/clusters/local/deadletters/{entry.dead_letter_id}/").content.decode()


def test_the_short_address_leads_to_the_page(http, job):
    assert http.get(f"/replays/{job.pk}/").headers["Location"] == f"/clusters/local/replays/{job.pk}/"
    assert http.get("/replays/999/").status_code == 404
    assert http.get("/clusters/local/replays/999/").status_code == 404
    assert http.get("/clusters/local/replays/x/").status_code == 404


def test_a_replay_can_be_started_and_changed_from_pages(http, job):
    page = http.get("/clusters/local/groups/billing/deadletters/replay/?text=order")
    assert "Send to" in text_of(page)
    # What links say is seen; what nobody says is behind a word.
    seen, _, folded = page.content.decode().partition("<details")
    assert 'name="text"' in seen
    assert 'name="user_property"' in folded
    ReplayJob.objects.update(state="paused")
    assert "running" in text_of(http.get(f"/clusters/local/replays/{job.pk}/resume/"))
    assert "Messages a second" in text_of(http.get(f"/clusters/local/replays/{job.pk}/rate/"))


def test_dead_letters_lead_to_their_replays_and_to_a_new_one(http, job):
    dead, failure = DeadLetter.objects.order_by("pk")[0], Failure.objects.get()
    page = http.get(f"/clusters/local/deadletters/{dead.pk}/").content.decode()
    assert f"/clusters/local/replays/{job.pk}/" in page
    assert f"/clusters/local/groups/billing/deadletters/replay/?ids={dead.pk}" in page
    of_failure = http.get(f"/clusters/local/deadletters/failures/{failure.pk}/").content.decode()
    assert f"/clusters/local/groups/billing/deadletters/replay/?failure={failure.pk}" in of_failure
    of_group = http.get("/clusters/local/groups/billing/deadletters/").content.decode()
    assert "/clusters/local/groups/billing/deadletters/replay/" in of_group
