from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Count


def ask_again_who_can_be_watched(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Clusters of several masters of ours were polled before: the follower finds out which of them can be watched."""
    clusters = apps.get_model("mq_clusters", "Cluster").objects
    several = clusters.filter(kind="apache", brokers__broker_id=0).annotate(n=Count("brokers")).filter(n__gt=1)
    clusters.filter(pk__in=list(several.values_list("pk", flat=True))).update(kind="")


class Migration(migrations.Migration):
    dependencies = [
        ("mq_clusters", "0006_cluster_note"),
    ]

    operations = [
        migrations.AddField("cluster", "brokers_away", models.JSONField(blank=True, default=dict)),
        migrations.AddField("topic", "of_brokers", models.JSONField(blank=True, default=dict)),
        migrations.AddField("group", "of_brokers", models.JSONField(blank=True, default=dict)),
        migrations.AddField("member", "known_by", models.JSONField(blank=True, default=list)),
        migrations.AddField("subscription", "known_by", models.JSONField(blank=True, default=list)),
        migrations.AlterField(
            "cluster",
            "kind",
            models.CharField(
                blank=True,
                choices=[
                    ("", "not known yet"),
                    ("ours", "this project's broker"),
                    ("apache", "Apache RocketMQ"),
                    ("mixed", "this project's brokers and Apache RocketMQ's"),
                ],
                default="",
                max_length=10,
            ),
        ),
        migrations.RunPython(ask_again_who_can_be_watched, migrations.RunPython.noop),
    ]
