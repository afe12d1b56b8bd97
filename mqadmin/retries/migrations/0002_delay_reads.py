from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mq_retries", "0001_failed_attempts")]

    operations = [
        migrations.CreateModel(
            name="DelayRead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("broker_name", models.CharField(max_length=255)),
                ("read_until", models.DateTimeField(blank=True, null=True)),
                ("skipped_at", models.DateTimeField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="delay_reads",
                        to="mq_clusters.cluster",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("cluster", "broker_name"), name="mq_delay_read_identity")
                ],
            },
        ),
    ]
