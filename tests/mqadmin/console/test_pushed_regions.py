"""Whoever is pushed a region gets what their own request would give them: every region, every role, every scope."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.conf import settings as project
from django.contrib.auth.models import AbstractUser
from django.test import Client
from django.test.signals import template_rendered
from django.urls import reverse
from django.utils import timezone

from consumer.models import HostedGroup
from mqadmin.clusters.models import Cluster
from mqadmin.console.fragments import SharedFragments
from mqadmin.deadletters.models import Failure
from mqadmin.live.regions import PageAddress, RegionResponse, Regions
from mqadmin.live.viewers import judged, viewer_of
from mqadmin.people.masking import read_rules
from mqadmin.people.roles import Role
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Target
from tests.mqadmin.console.test_pages import ARGUMENTS, EVERY_PAGE, address_of
from tests.support import console_rows as seed
from tests.support.dead_letter_brokers import dead_message
from tests.support.people import give_session, make_person

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TEMPLATES = Path(__file__).parents[3] / "templates" / "console"
# Those with a region beside EVERY_PAGE. That none is missing shows in the templates that are rendered.
FURTHER = ("alerts", "failure", "flows", "replay", "reports", "topic_flow")
# A list in another order, and a search of which bodies are found by whom depends on the role.
QUERIES = ("/clusters/local/groups/?sort=-lag", "/clusters/local/deadletters/?body=gateway")
# Role, and on which cluster; two people of each.
SCOPES = (
    ("", ""),
    *((role.value, "") for role in Role),
    *((role.value, "local") for role in Role),
    ("viewer", "other"),
    ("admin", "other"),
)


class Person:
    """Somebody with a browser and an open page."""

    def __init__(self, account: AbstractUser) -> None:
        self.name = account.get_username()
        self.client = Client(headers={"accept-language": "en"})
        give_session(self.client, account)
        self.viewer = viewer_of(self.client.cookies[project.SESSION_COOKIE_NAME].value, account)
        self.scope = {
            "session": self.client.session,
            "headers": [(b"host", b"testserver")],
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
            "scheme": "ws",
        }

    def fetches(self, page: str) -> bytes | None:
        """Returns the region as the browser gets it; None where it gets none."""
        answer = self.client.get(page, headers={"HX-Request": "true"})
        return answer.content if isinstance(answer, RegionResponse) else None


@pytest.fixture
def people(group: Any) -> list[Person]:
    clusters = {"local": group.cluster, "other": Cluster.objects.create(name="other", namesrv="10.0.0.2:9876")}
    return [
        Person(make_person(f"{role or 'nothing'} {where or 'everywhere'} {number}", role or None, clusters.get(where)))
        for role, where in SCOPES
        for number in range(2)
    ]


@pytest.fixture
def pages(group: Any, now: Any, settings: Any) -> list[str]:
    """The addresses of all that have a region."""
    settings.MQADMIN_MASKED = read_rules("viewer:*")
    settings.MQADMIN_NAMESRV = group.cluster.namesrv
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    seed.make_dead_letters(group.cluster, "billing", [dead_message(number) for number in range(3)], now=now)
    job = ReplayJob.objects.create(
        cluster=group.cluster,
        identity="x",
        group_name="billing",
        until_id=0,
        target=Target.ORIGIN,
        rate_per_s=100,
        stop_percent=5,
        started_by="ada",
        created_at=now,
    )
    further = {**ARGUMENTS, "failure": Failure.objects.get().pk, "replay": str(job.pk)}
    return [
        *(reverse(name, args=args) for name, args in EVERY_PAGE),
        *(address_of(name, further) for name in FURTHER),
        *QUERIES,
    ]


@pytest.fixture
def stood_still(monkeypatch: pytest.MonkeyPatch, now: Any) -> None:
    """No clock runs and no rendering is shared, so that what differs differs by who asks."""
    monkeypatch.setattr(timezone, "now", lambda: now)
    apps.get_app_config("mq_console").fragments = SharedFragments(age_max_s=0)


@pytest.fixture
def rendered() -> Iterator[set[str]]:
    found: set[str] = set()

    def note(template: Any, **_: Any) -> None:
        if template.name and template.name.endswith("_region.html"):
            found.add(Path(template.name).name)

    template_rendered.connect(note)
    yield found
    template_rendered.disconnect(note)


def test_what_is_pushed_is_what_the_person_s_own_request_gives(pages, people, stood_still, rendered):
    regions = Regions()
    verdicts = judged({person.viewer for person in people})
    by_rights: defaultdict[str, list[Person]] = defaultdict(list)
    for person in people:
        rights = verdicts[person.viewer].rights
        assert rights is not None
        by_rights[rights.digest].append(person)
    assert [len(alike) for alike in by_rights.values()] == [2] * len(SCOPES)
    differing: defaultdict[str, set[bytes | None]] = defaultdict(set)
    for page in pages:
        for alike in by_rights.values():
            frame = async_to_sync(regions.rendered)(PageAddress(page, "en"), alike[0].scope)
            pushed = None if frame is None else gzip.decompress(frame)
            differing[page].add(pushed)
            # Rendered for the one, pushed to the other.
            assert alike[1].fetches(page) == pushed, (page, alike[1].name)
    assert rendered == {path.name for path in TEMPLATES.glob("*_region.html")}
    # Not everybody is shown the same, so the comparison compares something.
    assert all(None in found for page, found in differing.items() if page.startswith("/clusters/local/"))
    assert max(len(found) for found in differing.values()) >= 4
