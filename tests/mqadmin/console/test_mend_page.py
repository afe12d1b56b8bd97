"""The page that mends a dead letter: what was typed stays, the difference is shown, hostile text stays text."""

from __future__ import annotations

import pytest

from mqadmin.deadletters.models import DeadLetter, MendedCopy
from mqadmin.people.masking import read_rules
from tests.mqadmin.console.pages import text_of
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def url(cluster, group, now):
    messages = [dead_message(0, body=b'{"id":1}', properties={"colour": "</textarea><b>"})]
    seed.make_dead_letters(cluster, "billing", messages, now=now)
    return f"/clusters/local/deadletters/{DeadLetter.objects.get().pk}/mend/"


def form_of(page, **changes):
    context = page.context
    pairs = [(name, value) for name, value in context["properties"] if name]
    body = context["typed_body"] if "typed_body" in context else context["body"].text
    values = {
        "version": context["version"],
        "body": body,
        "body_as": context["body"].typed_as,
        "name": [name for name, _ in pairs],
        "value": [value for _, value in pairs],
    }
    if "preview" in context:
        values |= {"key": context["key"], "fingerprint": context["preview"].fingerprint}
    return values | changes


def test_a_dead_letter_is_mended_by_form_difference_and_confirmation(http, url):
    page = http.get(url)
    assert "</textarea><b>" not in page.content.decode()
    shown = http.post(url, form_of(page, preview="1", body='{\r\n  "id": 2\r\n}', value=["order-0 k", "paid", "blue"]))
    text = text_of(shown)
    assert '- "id": 1' in text
    assert '+ "id": 2' in text
    assert "colour </textarea><b> blue" in text
    assert not MendedCopy.objects.exists()
    kept = http.post(url, form_of(shown, run="1"), follow=True)
    assert "Mend a dead letter" in text_of(kept)
    assert bytes(MendedCopy.objects.get().body) == b'{"id":2}'
    letter = text_of(http.get(url.removesuffix("mend/")))
    assert "by admin" in letter
    assert '+ "id": 2' in letter
    assert "Discard the mended copy" in letter


def test_what_was_typed_stays_when_it_is_refused(http, url):
    page = http.get(url)
    wrong = http.post(url, form_of(page, preview="1", body="{oops"))
    assert wrong.status_code == 422
    assert "{oops</textarea>" in wrong.content.decode()
    assert "The body is JSON, and what was typed is not" in text_of(wrong)


def test_a_form_opened_before_somebody_elses_mending_is_refused_and_keeps_its_text(http, url):
    page = http.get(url)
    first = http.post(url, form_of(page, preview="1", body='{"id": 2}'))
    http.post(url, form_of(first, run="1"))
    for late in (form_of(page, preview="1", body='{"id": 3}'), form_of(page, run="1", body='{"id": 3}')):
        answer = http.post(url, late)
        assert answer.status_code == 409
        assert "admin has mended it meanwhile" in text_of(answer)
        assert '{"id": 3}</textarea>' in answer.content.decode().replace("&quot;", '"')


def test_who_may_not_see_the_body_gets_no_form(http, url, settings):
    settings.MQADMIN_MASKED = read_rules("admin:orders")
    page = http.get(url)
    assert page.status_code == 403
    assert "<textarea" not in page.content.decode()
    letter = text_of(http.get(url.removesuffix("mend/")))
    assert "Mend" not in letter


def test_discarding_is_previewed(http, url):
    page = http.post(url, form_of(http.get(url), preview="1", body="[]"))
    http.post(url, form_of(page, run="1"))
    discard = url.removesuffix("mend/") + "discard-mend/"
    assert "what was typed is gone" in text_of(http.get(discard))
