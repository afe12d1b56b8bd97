from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from mqadmin.people.roles import Role
from tests.support.people import make_person

JOB = {"job": "tidy", "action": "create_topic", "cluster": "local", "schedule": "0 3 * * *", "identity": "admin"}


def text(response: Any) -> str:
    assert response.status_code == 200
    return html.unescape(response.content.decode())


def fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


def test_a_job_is_made_and_listed_by_the_pages(http: Client, cluster: Any) -> None:
    assert "No job yet" in text(http.get("/jobs/"))
    asked = {**JOB, "arguments": '{"topic": "orders"}'}
    shown = http.get("/jobs/make/", asked)
    posted = http.post("/jobs/make/", {**asked, "key": fields(text(shown))["key"]}, follow=True)
    assert "DONE" in text(posted)
    said = text(http.get("/jobs/"))
    for words in ('data-row="tidy"', "Create a topic", "0 3 * * *", "has not run yet"):
        assert words in said
    assert text(http.get("/jobs/tidy/running/")).count("no") > 0
    assert http.get("/jobs/tidy/delete/").status_code == 200


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 403), (Role.OPERATOR, 200), (Role.ADMIN, 200)])
def test_who_may_see_the_jobs(db: Any, role: Role, status: int) -> None:
    client = Client()
    client.force_login(make_person("ann", role))
    page = client.get("/jobs/")
    assert page.status_code == status
    assert ("/jobs/make/" in page.content.decode()) is (role is Role.ADMIN)
