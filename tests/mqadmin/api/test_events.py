"""Events over REST."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import AbstractUser
from django.test import Client
from django.utils import timezone

from mqadmin.events.kinds import EventKind, NewEvent
from mqadmin.events.models import Event
from mqadmin.events.recording import record

EVENTS = "/api/v1/events"


def happen(cluster: str, *groups: str, kind: EventKind = EventKind.VERDICT) -> None:
    record([NewEvent(kind, cluster, group, timezone.now(), {"was": "ok"}) for group in groups])


def groups_of(client: Client, query: str = "") -> list[str]:
    return [row["group"] for row in client.get(f"{EVENTS}?{query}").json()["items"]]


def test_events_are_listed_by_number_and_filtered(http: Client) -> None:
    happen("local", "billing", "mail")
    happen("prod", "billing", kind=EventKind.REBALANCE)
    first = Event.objects.order_by("pk")[0]
    assert groups_of(http) == ["billing", "mail", "billing"]
    assert groups_of(http, f"after={first.pk}") == ["mail", "billing"]
    assert groups_of(http, "kind=rebalance") == ["billing"]
    assert groups_of(http, "cluster=local&group=billing") == ["billing"]
    page = http.get(f"{EVENTS}?limit=2").json()
    assert page["items"][0] == {
        "id": first.pk,
        "at": page["items"][0]["at"],
        "kind": "verdict",
        "cluster": "local",
        "group": "billing",
        "data": {"was": "ok"},
    }
    assert groups_of(http, f"limit=2&cursor={page['next_cursor']}") == ["billing"]


def test_a_token_sees_events_of_its_clusters_alone(ann: AbstractUser, token_of: Callable[..., Client]) -> None:
    happen("local", "billing")
    happen("prod", "mail")
    assert groups_of(token_of(ann, "viewer", ["local"])) == ["billing"]
    assert groups_of(token_of(ann, "viewer", ["local"]), "cluster=prod") == []
    assert groups_of(token_of(ann, "viewer")) == ["billing", "mail"]
