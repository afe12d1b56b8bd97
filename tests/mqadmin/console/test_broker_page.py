"""A broker's page: what it told of its run, and when; and where its settings are changed."""

from __future__ import annotations

import re
from datetime import timedelta

from mqadmin.metrics.models import BrokerRuntime
from tests.support import console_rows as seed

PAGE = "/clusters/local/brokers/broker-a/"


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_it_shows_what_the_broker_told_the_important_first(http, cluster, now):
    BrokerRuntime.objects.create(
        broker=cluster.brokers.get(),
        figures={"ackThreadPoolQueueSize": "0", "commitLogDiskRatio": "0.41", "zzz": "<b>"},
        put_per_s=12.0,
        get_per_s=None,
        seen_at=now - timedelta(minutes=5, seconds=10),
    )
    page = http.get(PAGE)
    text = text_of(page)
    assert text.index("commitLogDiskRatio 0.41") < text.index("ackThreadPoolQueueSize 0") < text.index("zzz &lt;b&gt;")
    assert re.search(r"stored per second\s+12", text)
    assert re.search(r"given out per second\s+unknown", text)
    assert re.search(r"5 m (\d+ s )?ago", text)
    assert f'href="{PAGE}configuration/"' in page.content.decode()


def test_one_that_told_nothing_yet_says_so(http, cluster):
    assert "told nothing of its run yet" in text_of(http.get(PAGE))


def test_slaves_of_the_name_stand_below_their_master(http, cluster, now):
    seed.make_broker(cluster, "broker-a", now=now, broker_id=1, address="10.0.0.9:10911")
    text = text_of(http.get(PAGE))
    assert text.index("Master") < text.index("Slave 1 10.0.0.9:10911")


def test_a_broker_that_is_not_known_has_no_page(http, cluster):
    assert http.get("/clusters/local/brokers/nobody/").status_code == 404


def test_the_cluster_leads_there(http, cluster):
    assert f'href="{PAGE}"' in http.get("/clusters/local/").content.decode()
