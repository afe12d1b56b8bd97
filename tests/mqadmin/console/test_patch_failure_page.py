"""The page that mends a failure by a JSON Patch."""

from __future__ import annotations

import json

import pytest

from mqadmin.deadletters.models import Failure, MendedCopy
from tests.mqadmin.console.pages import text_of
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

pytestmark = pytest.mark.django_db(transaction=True)

PATCH = json.dumps([{"op": "replace", "path": "/id", "value": 17}])


@pytest.fixture
def url(cluster, group, now):
    messages = [dead_message(n, body=b'{"id":%d}' % n) for n in range(5)]
    seed.make_dead_letters(cluster, "billing", messages, now=now)
    return f"/clusters/local/deadletters/failures/{Failure.objects.get().pk}/patch/"


def test_a_patch_is_previewed_with_some_diffs_and_carried_out(http, url):
    assert "JSON Patch" in text_of(http.get(url))
    shown = http.post(url, {"patch": PATCH, "preview": "1"})
    text = text_of(shown)
    assert "It changes 5 of 5" in text
    assert text.count('+ "id": 17') == 3
    assert not MendedCopy.objects.exists()
    names = ("patch", "until", "after", "key")
    confirmed = {name: shown.context[name] for name in names}
    run = http.post(url, {**confirmed, "fingerprint": shown.context["preview"].fingerprint, "run": "1"}, follow=True)
    assert "Mend dead letters by a JSON Patch" in text_of(run)
    assert {bytes(one.body) for one in MendedCopy.objects.all()} == {b'{"id":17}'}
    assert MendedCopy.objects.count() == 5


def test_why_it_does_not_apply_is_counted_by_reason(http, url):
    text = text_of(http.post(url, {"patch": PATCH.replace("/id", "/nothing"), "preview": "1"}))
    assert "It changes 0 of 5" in text
    assert "5:" in text


def test_what_was_typed_stays_when_it_is_no_patch(http, url):
    page = http.post(url, {"patch": "<b>", "preview": "1"})
    assert page.status_code == 422
    assert "&lt;b&gt;</textarea>" in page.content.decode()
