"""Rounds over all clusters: one that fails leaves the others theirs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.producers import asking as of_producers
from mqadmin.producers.tasks import ask_for_producers
from mqadmin.subscriptions import asking as of_members
from mqadmin.subscriptions.tasks import ask_members
from tests.support import console_rows as seed


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("module", "task"), [(of_producers, ask_for_producers), (of_members, ask_members)], ids=["producers", "members"]
)
def test_a_cluster_that_fails_leaves_the_others_their_round(
    module: ModuleType, task: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("first", "second"):
        seed.make_cluster(name, now=timezone.now())
    asked: list[str] = []

    def ask_round(cluster: Cluster, now: Any) -> int:
        asked.append(cluster.name)
        if cluster.name == "first":
            raise ValueError("odd answer")
        return 0

    monkeypatch.setattr(module, "ask_round", ask_round)
    task()
    assert asked == ["first", "second"]
    assert "first" in caplog.text
