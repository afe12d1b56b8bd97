"""Adds the outbox: messages written with a database transaction, and the right to send them."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_consumer", "0004_a_group_is_hosted_per_cluster"),
    ]

    operations = [
        migrations.CreateModel(
            name="OutboxLease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster", models.CharField(blank=True, max_length=100, unique=True)),
                ("holder", models.UUIDField(blank=True, null=True)),
                ("until", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "db_table": "mq_consumer_outbox_lease",
            },
        ),
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster", models.CharField(blank=True, default="", max_length=100)),
                ("topic", models.CharField(max_length=255)),
                ("order_key", models.CharField(blank=True, default="", max_length=255)),
                ("body", models.BinaryField()),
                ("options", models.JSONField(default=dict)),
                ("message_id", models.CharField(max_length=32, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "pending"), ("sent", "sent"), ("failed", "failed")],
                        default="pending",
                        max_length=7,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("next_attempt_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.CharField(blank=True, default="", max_length=1000)),
            ],
            options={
                "db_table": "mq_consumer_outbox",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")), fields=["cluster", "id"], name="mq_outbox_due"
                    ),
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["topic", "order_key", "id"],
                        name="mq_outbox_key",
                    ),
                    models.Index(fields=["state", "ended_at"], name="mq_outbox_ended"),
                ],
            },
        ),
    ]
