"""Pauses of all clusters: one that cannot be judged leaves the others theirs."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster
from mqadmin.rebalances import judging
from mqadmin.rebalances.tasks import judge_pauses
from tests.support import console_rows as seed


@pytest.mark.django_db
def test_a_cluster_that_fails_leaves_the_others_theirs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("first", "second"):
        seed.make_cluster(name, now=timezone.now())
    judged: list[str] = []

    def judge(cluster: Cluster, now: datetime) -> int:
        judged.append(cluster.name)
        if cluster.name == "first":
            raise ValueError("odd details")
        return 0

    monkeypatch.setattr(judging, "judge", judge)
    judge_pauses()
    assert sorted(judged) == ["first", "second"]
    assert "first" in caplog.text
