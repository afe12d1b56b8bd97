import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_clusters", "0017_clusters_that_rest"),
        ("mq_reports", "0006_late_data"),
    ]

    operations = [
        migrations.CreateModel(
            name="RebalanceOfGone",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("group_name", models.CharField(max_length=255)),
                ("at", models.DateTimeField()),
                ("kind", models.CharField(max_length=24)),
                ("client_id", models.CharField(blank=True, default="", max_length=255)),
                ("moved_queues", models.PositiveIntegerField(default=0)),
                ("source", models.CharField(max_length=8)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="mq_clusters.cluster"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["cluster", "at"], name="mq_rebalance_of_gone_by_time")],
            },
        ),
    ]
