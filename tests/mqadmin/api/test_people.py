"""People, their roles and log-ins; scheduled jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AbstractUser
from django.test import Client
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.jobs import tasks
from mqadmin.people.roles import Role
from tests.support.people import make_person

PEOPLE = "/api/v1/people"


def run(http: Client, action: str, /, **arguments: Any) -> Any:
    return http.post(f"/api/v1/actions/{action}/run", {"arguments": arguments}, content_type="application/json")


def test_people_are_listed_with_their_roles(http: Client, cluster: Cluster) -> None:
    make_person("bob", Role.OPERATOR)
    make_person("cleo", Role.ADMIN, cluster)
    make_person("dan")
    rows = {row["name"]: row for row in http.get(PEOPLE).json()["items"]}
    assert [rows[name]["role"] for name in ("ann", "bob", "cleo", "dan")] == ["admin", "operator", None, None]
    assert rows["cleo"]["cluster_roles"] == [{"cluster": "local", "role": "admin"}]
    first = http.get(PEOPLE, {"limit": 2}).json()
    second = http.get(PEOPLE, {"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [row["name"] for row in first["items"] + second["items"]] == ["ann", "bob", "cleo", "dan"]
    assert (first["total_count"], second["next_cursor"]) == (4, None)
    assert [row["name"] for row in http.get(PEOPLE, {"q": "LEO"}).json()["items"]] == ["cleo"]
    assert http.get(f"{PEOPLE}/bob").json() == rows["bob"]
    assert http.get(f"{PEOPLE}/nobody").status_code == 404


def test_a_role_is_given_and_seen(http: Client, cluster: Cluster) -> None:
    make_person("bob")
    assert run(http, "give_role", person="bob", role="viewer", clusters=["local"]).status_code == 200
    assert http.get(f"{PEOPLE}/bob").json()["cluster_roles"] == [{"cluster": "local", "role": "viewer"}]


def test_a_log_in_is_listed_and_ended(http: Client) -> None:
    make_person("bob", password="a long one")
    other = Client(headers={"User-Agent": "Firefox"})
    assert other.post("/login/", {"username": "bob", "password": "a long one"}).status_code == 302
    (row,) = http.get(f"{PEOPLE}/bob/log-ins").json()["items"]
    assert (row["address"], row["user_agent"]) == ("127.0.0.1", "Firefox")
    assert "session_key" not in row
    assert http.get(f"{PEOPLE}/bob").json()["log_in_count"] == 1
    assert run(http, "end_log_ins", person="bob", log_in=row["log_in"]).status_code == 200
    assert http.get(f"{PEOPLE}/bob/log-ins").json()["items"] == []
    assert other.get("/")["Location"].startswith("/login/")
    assert http.get(f"{PEOPLE}/nobody/log-ins").status_code == 404


def test_people_are_for_administrators_of_the_installation(
    cluster: Cluster, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    operator = make_person("olga", Role.OPERATOR)
    narrow = [token_of(ann, "operator"), token_of(ann, clusters=["local"]), token_of(operator)]
    for path in (PEOPLE, f"{PEOPLE}/olga", f"{PEOPLE}/olga/log-ins"):
        assert token_of(ann).get(path).status_code == 200
        assert [client.get(path).status_code for client in narrow] == [403, 403, 403]


def test_jobs_are_made_listed_paused_and_deleted(http: Client, cluster: Cluster) -> None:
    asked = {"topic": "orders", "owner": "shop"}
    made = run(
        http,
        "make_job",
        job="nightly",
        action="describe_topic",
        schedule="0 3 * * *",
        identity="ann",
        cluster="local",
        arguments=json.dumps(asked),
    )
    assert made.status_code == 200, made.content
    (job,) = http.get("/api/v1/jobs").json()["items"]
    assert (job["name"], job["schedule"], job["is_running"]) == ("nightly", "0 3 * * *", True)
    assert (job["cluster"], job["identity"], job["arguments"]) == ("local", "ann", asked)
    assert job["next_at"]
    assert job["last"] is None
    tasks.run_action(**json.loads(PeriodicTask.objects.get(name="nightly").kwargs), key="now")
    entry = AuditEntry.objects.latest("number")
    job = http.get("/api/v1/jobs/nightly").json()
    assert (job["last"]["number"], job["last"]["outcome"]) == (entry.number, "done")
    assert run(http, "set_job_running", job="nightly", running="no").status_code == 200
    paused = http.get("/api/v1/jobs/nightly").json()
    assert (paused["is_running"], paused["next_at"]) == (False, None)
    assert run(http, "delete_job", job="nightly").status_code == 200
    assert http.get("/api/v1/jobs/nightly").status_code == 404


@pytest.mark.parametrize("kwargs", ["", "[1]", "no JSON", '{"arguments": [1]}'])
def test_a_job_that_somebody_else_wrote_is_shown(http: Client, kwargs: str) -> None:
    nightly = CrontabSchedule.objects.create(minute="0", hour="3")
    PeriodicTask.objects.create(name="odd", task=tasks.NAME, crontab=nightly, kwargs=kwargs)
    assert http.get("/api/v1/jobs/odd").json()["arguments"] == {}
    assert http.get("/jobs/").status_code == 200


def test_jobs_are_for_operators_of_the_installation(
    cluster: Cluster, ann: AbstractUser, token_of: Callable[..., Client]
) -> None:
    narrow = [token_of(ann, "viewer"), token_of(ann, clusters=["local"]), token_of(make_person("vera", Role.VIEWER))]
    for path in ("/api/v1/jobs", "/api/v1/jobs/nightly"):
        assert token_of(ann, "operator").get(path).status_code in (200, 404)
        assert [client.get(path).status_code for client in narrow] == [403, 403, 403]
