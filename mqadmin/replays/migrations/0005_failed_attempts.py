from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F


def count_the_dead(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Those that are dead letters again are all that is known to have failed."""
    apps.get_model("mq_replays", "ReplayJob").objects.update(failed_count=F("dead_again_count"))
    entries = apps.get_model("mq_replays", "ReplayEntry").objects
    entries.filter(dead_again_id__isnull=False).update(failed_attempt=0)


class Migration(migrations.Migration):
    dependencies = [("mq_replays", "0004_message_before")]

    operations = [
        migrations.RenameField("replayjob", "judged_dead_count", "judged_failed_count"),
        migrations.AddField("replayjob", "failed_count", models.BigIntegerField(default=0)),
        migrations.AddField("replayentry", "failed_attempt", models.PositiveIntegerField(blank=True, null=True)),
        migrations.AddField("replayentry", "retry_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddIndex(
            "replayentry",
            models.Index(
                condition=models.Q(("failed_attempt__isnull", False)),
                fields=["job", "-id"],
                name="mq_replay_entry_failed",
            ),
        ),
        migrations.RunPython(count_the_dead, migrations.RunPython.noop),
    ]
