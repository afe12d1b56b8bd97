import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_clusters", "0017_clusters_that_rest"),
        ("mq_lag", "0004_failures_by_brokers"),
    ]

    operations = [
        migrations.AddField(
            model_name="samplingstate",
            name="appended_until_s",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="samplingstate",
            name="lost_until_s",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="sampledspan",
            name="brokers",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.CreateModel(
            name="GoneGroup",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("group_id", models.BigIntegerField()),
                ("name", models.CharField(max_length=255)),
                ("at_s", models.BigIntegerField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="mq_clusters.cluster"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GoneSample",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic_name", models.CharField(max_length=255)),
                ("at_s", models.BigIntegerField()),
                ("packed", models.BinaryField()),
                (
                    "gone",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="samples", to="mq_lag.gonegroup"
                    ),
                ),
            ],
        ),
    ]
