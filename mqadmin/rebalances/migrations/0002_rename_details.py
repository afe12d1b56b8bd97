"""Names the details of a rebalance event, and where it was observed, as the code does."""

from django.db import migrations, models

SOURCES = [("watch", "reported by the broker"), ("poll", "found between two samples")]


class Migration(migrations.Migration):
    dependencies = [("mq_rebalances", "0001_initial")]

    operations = [
        migrations.RenameField("rebalanceevent", "facts", "details"),
        migrations.AlterField("rebalanceevent", "source", models.CharField(choices=SOURCES, max_length=8)),
    ]
