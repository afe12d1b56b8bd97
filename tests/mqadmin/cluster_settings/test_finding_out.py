"""What is said of name servers that know different brokers."""

from __future__ import annotations

import pytest

from mqadmin.cluster_settings.finding_out import warnings
from mqadmin.observing.gateway.probing import BrokerProbe, NameServerProbe, Probe


def found(*, is_ours: bool, clusters: tuple[str, str]) -> Probe:
    """Two brokers, each known to a name server of its own."""
    names = ("broker-a", "broker-b")
    return Probe(
        name_servers=tuple(NameServerProbe(f"{name}:9876", brokers=(name,)) for name in names),
        brokers=tuple(
            BrokerProbe(name, cluster, f"{name}:10911", is_ours=is_ours)
            for name, cluster in zip(names, clusters, strict=True)
        ),
        broker_count=2,
    )


@pytest.mark.parametrize(
    ("is_ours", "clusters", "is_odd"),
    [(True, ("shop", "shop"), False), (True, ("shop", "other"), True), (False, ("shop", "shop"), True)],
    ids=["ours, of one cluster", "ours, of two", "Apache's"],
)
def test_only_ours_of_one_cluster_may_be_known_to_one_name_server_each(
    is_ours: bool, clusters: tuple[str, str], is_odd: bool
) -> None:
    said = list(warnings(found(is_ours=is_ours, clusters=clusters), ""))
    assert any("know different brokers" in words for words in said) == is_odd
