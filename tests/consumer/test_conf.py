from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from consumer import conf


@pytest.fixture(autouse=True)
def named(settings: Any) -> None:
    settings.MQADMIN_NAMESRV = "10.0.0.1:9876"
    settings.MQADMIN_CLUSTERS = {"payments": "10.0.0.2:9876;10.0.0.3:9876"}


def test_a_cluster_is_named_by_the_settings() -> None:
    assert conf.namesrv() == "10.0.0.1:9876"
    assert conf.namesrv("payments") == "10.0.0.2:9876;10.0.0.3:9876"
    with pytest.raises(ImproperlyConfigured, match="cluster 'stock' is not in the setting MQADMIN_CLUSTERS"):
        conf.namesrv("stock")


@pytest.mark.parametrize(
    ("servers", "name"),
    [("10.0.0.1:9876", ""), ("10.0.0.3:9876; 10.0.0.2:9876", "payments"), ("10.0.0.2:9876", None)],
)
def test_a_cluster_is_known_by_its_name_servers_in_any_order(servers: str, name: str | None) -> None:
    assert conf.cluster_behind(servers) == name


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        ({"a@b": "10.0.0.2:9876"}, "letters, digits"),
        ({"": "10.0.0.2:9876"}, "letters, digits"),
        ({"one": "10.0.0.2:9876", "two": "10.0.0.2:9876"}, "'two' has the name servers of one"),
        ({"one": "10.0.0.1:9876"}, "'one' has the name servers of MQADMIN_NAMESRV"),
    ],
)
def test_names_that_would_be_mistaken_are_refused(settings: Any, clusters: dict[str, str], words: str) -> None:
    settings.MQADMIN_CLUSTERS = clusters
    with pytest.raises(ImproperlyConfigured, match=words):
        conf.clusters()
