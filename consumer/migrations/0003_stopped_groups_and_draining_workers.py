"""Adds what operators set: a group that is stopped, a worker that is draining."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mq_consumer", "0002_pending_and_desired_state")]

    operations = [
        migrations.AddField("hostedgroup", "is_stopped", models.BooleanField(default=False)),
        migrations.AddField("loopsworker", "is_draining", models.BooleanField(default=False)),
    ]
