"""Lists are had as files from their pages, with the filters that the page has."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import AsyncClient

from mqadmin.audit import chain
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.models import Cluster
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.states import Target
from mqadmin.tokens.models import ApiToken
from tests.support import console_rows as seed

pytestmark = pytest.mark.django_db(transaction=True)
LINK = re.compile(r'href="(/api/v1/[^"]*\?format=(?:csv|jsonl)[^"]*)"')


@pytest.fixture
def rows(cluster: Cluster, admin_user: Any, now: datetime) -> None:
    """Something in each list, and something else that its filter leaves out."""
    for name in ("billing", "mailing"):
        seed.make_topic(cluster, name, now=now)
        seed.make_group(cluster, name, now=now, lag=0)
        ReplayJob.objects.create(
            cluster=cluster,
            identity=name,
            group_name=name,
            until_id=0,
            target=Target.GROUP,
            rate_per_s=1,
            stop_percent=5,
            created_at=now,
        )
        said = {"actor": name, "action": "create_topic", "cluster": "local", "subject": name, "outcome": "done"}
        chain.append(AuditEntry(**said))
    get_user_model().objects.create_user("billing")
    ApiToken.objects.create(person=admin_user, name="billing", digest="x", role="viewer", expires_at=now + timedelta(1))


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    "address",
    [
        "/audit/?subject=billing&person=&action=&outcome=&way=&since=&until=",
        "/tokens/",
        "/people/?q=billing",
        "/clusters/local/topics/?q=billing&owner=",
        "/clusters/local/groups/?q=billing&status=",
        "/clusters/local/replays/?group=billing",
    ],
)
async def test_a_list_is_had_as_a_file_with_the_filters_of_its_page(
    async_client: AsyncClient, admin_user: Any, address: str
) -> None:
    await async_client.aforce_login(admin_user)
    page = (await async_client.get(address)).content.decode()
    links = [html.unescape(one) for one in LINK.findall(page)]
    assert [re.search("format=([a-z]+)", one)[1] for one in links] == ["csv", "jsonl"]  # type: ignore[index]
    for link in links:
        answer = await async_client.get(link)
        assert answer.status_code == 200
        text = b"".join([chunk async for chunk in answer]).decode()
        assert "billing" in text
        assert "mailing" not in text
