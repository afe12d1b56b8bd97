"""The files of Apache's default settings, measured again on fresh brokers of their versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqadmin.brokers.defaults import BY_PROCESSORS, OWN, defaults_of
from mqadmin.clusters.models import ClusterKind
from mqadmin.observing.gateway import ask
from tests.support.apache import ApacheRocketMQ
from tests.support.java import APACHE_VERSION, OLD_APACHE_VERSION, require_apache

pytestmark = [pytest.mark.journey, pytest.mark.java]


@pytest.mark.parametrize("version", [APACHE_VERSION, OLD_APACHE_VERSION])
def test_a_fresh_broker_has_the_defaults_of_its_version(tmp_path: Path, version: str) -> None:
    require_apache(version)

    with ApacheRocketMQ(tmp_path, version=version) as apache:
        told = ask(apache.namesrv, lambda gateway: gateway.broker_settings.config(apache.broker))
    defaults = defaults_of(ClusterKind.APACHE, told.version)
    assert defaults is not None
    assert defaults.version == version
    given = set(apache.given)
    measured = {name: text for name, text in told.values.items() if name not in OWN | BY_PROCESSORS | given}
    assert measured == {name: text for name, text in defaults.values.items() if name not in given}
