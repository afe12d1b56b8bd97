"""Files go after a week, unless a replay of them has not ended; one whose reading broke off goes after an hour."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.replay_files.limits import KEPT_DAYS
from mqadmin.replay_files.models import ReplayFile
from mqadmin.replay_files.retention import remove_old
from tests.mqadmin.replay_files.conftest import Store

pytestmark = pytest.mark.django_db


def test_old_files_go_and_those_in_use_stay(take: Store) -> None:
    now = timezone.now()
    used, old, new, half = (take([{"group": "billing", "body": str(number)}]) for number in range(4))
    ReplayFile.objects.filter(pk__in=[used.pk, old.pk]).update(read_at=now - timedelta(days=KEPT_DAYS, hours=1))
    ReplayFile.objects.filter(pk=half.pk).update(read_at=None, created_at=now - timedelta(hours=2))
    assert remove_old(now, in_use={used.pk}) == 2
    assert set(ReplayFile.objects.values_list("pk", flat=True)) == {used.pk, new.pk}
