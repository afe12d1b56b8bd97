from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mq_retries", "0002_delay_reads")]

    operations = [
        migrations.CreateModel(
            name="RetryReading",
            fields=[
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="retry_reading",
                        serialize=False,
                        to="mq_clusters.cluster",
                    ),
                ),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                ("read_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.AddField(
            model_name="delayread",
            name="boot",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="delayread",
            name="revision",
            field=models.BigIntegerField(default=0),
        ),
    ]
