"""Verdicts get the numbers of VERDICT_RANKS, which leave room; before, a verdict's number was its place in a list.

Every group and topic is due, so that what is derived now instead of stored is known after the first tick.
"""

from django.db import migrations
from django.db.models import F
from django.utils import timezone

RANK_STEP = 10


def renumber(apps, schema_editor):  # noqa: ARG001
    now = timezone.now()
    apps.get_model("mq_clusters", "Group").objects.update(verdict_rank=F("verdict_rank") * RANK_STEP, due_at=now)
    apps.get_model("mq_clusters", "Topic").objects.update(due_at=now)


def number_as_before(apps, schema_editor):  # noqa: ARG001
    apps.get_model("mq_clusters", "Group").objects.update(verdict_rank=F("verdict_rank") / RANK_STEP)


class Migration(migrations.Migration):
    dependencies = [("mq_clusters", "0003_followed_by_one_process")]

    operations = [migrations.RunPython(renumber, number_as_before)]
