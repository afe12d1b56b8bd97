"""Whose a topic or group is: on its list, as a filter, on its page; and exports of lists."""

from __future__ import annotations

import html
import re

import pytest

from mqadmin.clusters.models import Cluster
from mqadmin.ownership.models import Described, Ownership
from tests.mqadmin.console.pages import names_in, text_of
from tests.support import console_rows as seed

HOSTILE = "\u202e<b>&"


def owned(cluster: Cluster, kind: Described, name: str, owner: str = "", **texts: str) -> None:
    Ownership.objects.create(cluster=cluster, kind=kind, name=name, owner=owner, **texts)


@pytest.fixture(params=["topics", "groups"])
def list_page(request, cluster, now) -> tuple[str, Described]:
    """A list of three things, of which two have owners."""
    make = seed.make_topic if request.param == "topics" else seed.make_group
    kind = Described.TOPIC if request.param == "topics" else Described.GROUP
    for name in ("a", "b", "c"):
        make(cluster, name, now=now)
    owned(cluster, kind, "a", "shop")
    owned(cluster, kind, "b", HOSTILE)
    # Of another kind and on another cluster the same name is another thing.
    owned(cluster, Described.GROUP if kind == Described.TOPIC else Described.TOPIC, "c", "shop")
    owned(seed.make_cluster("other", now=now), kind, "c", "shop")
    return f"/clusters/local/{request.param}/", kind


def test_a_list_shows_owners_and_one_owners_rows_alone(http, list_page):
    page = http.get(list_page[0])
    assert "shop" in text_of(page)
    assert '<option value="shop">' in page.content.decode()
    (address,) = set(re.findall(r'href="(\?[^"]*owner=shop[^"]*)"', page.content.decode()))
    assert names_in(http.get(list_page[0] + html.unescape(address))) == ["a"]
    assert sorted(names_in(http.get(list_page[0], {"owner": ""}))) == ["a", "b", "c"]
    assert names_in(http.get(list_page[0], {"owner": "nobody"})) == []


def test_an_owners_name_is_escaped_and_isolated(http, list_page):
    page = http.get(list_page[0])
    assert f"<bdi>{html.escape(HOSTILE)}</bdi>" in page.content.decode()
    assert names_in(http.get(list_page[0], {"owner": HOSTILE})) == ["b"]


def test_without_owners_a_list_does_not_ask_for_them(http, list_page):
    Ownership.objects.all().delete()
    page = http.get(list_page[0]).content.decode()
    assert 'name="owner"' not in page
    assert '<th scope="col">owner' not in page


def test_a_filter_by_owner_keeps_the_other_filters_and_is_cleared_with_them(http, list_page):
    page = http.get(list_page[0], {"owner": "shop", "q": "a"}).content.decode()
    assert 'value="shop"' in page
    assert re.search(r'href="\?[^"]*">Clear<', page)
    assert "owner=shop" not in re.findall(r'href="(\?[^"]*)">Clear<', page)[0]


@pytest.mark.parametrize("kind", list(Described))
def test_a_page_says_whose_it_is_and_where_the_runbook_is(http, cluster, now, kind):
    (seed.make_topic if kind == Described.TOPIC else seed.make_group)(cluster, "orders", now=now)
    address = f"/clusters/local/{kind}s/orders/"
    assert "Runbook" not in text_of(http.get(address))
    texts = {"description": "Each <step>", "runbook": "https://wiki.example.org/orders"}
    owned(cluster, kind, "orders", "shop", **texts)
    page = http.get(address)
    assert "Owner shop · Runbook Each <step>" in text_of(page)
    assert 'href="https://wiki.example.org/orders" rel="noopener noreferrer"' in page.content.decode()
    assert f'href="/clusters/local/{kind}s/?owner=shop"' in page.content.decode()
    assert f'href="{address}describe/"' in page.content.decode()


@pytest.mark.parametrize(
    "address",
    [
        "/clusters/local/topics/?q=ord&sort=-messages&kind=all&page=1",
        "/clusters/local/groups/?q=bill&status=stalled&owner=",
        "/clusters/local/groups/billing/members/",
        "/clusters/local/groups/billing/subscriptions/",
        "/clusters/local/groups/billing/rebalances/",
        "/clusters/local/rebalances/",
        "/people/?q=adm",
    ],
)
@pytest.mark.usefixtures("group")
def test_a_list_is_exported_from_its_page_with_its_filters(http, address):
    page = http.get(address).content.decode()
    links = [html.unescape(link) for link in re.findall(r'href="(/api/v1/[^"]*format=[^"]*)"', page)]
    assert len(links) == 2
    for link in links:
        assert "page=" not in link
        for part in address.partition("?")[2].split("&"):
            assert part in link or part.startswith("page=") or part.endswith("=")
        answer = http.get(link)
        assert answer.status_code == 200, link
        assert answer["Content-Disposition"].startswith("attachment")
