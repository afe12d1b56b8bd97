"""Names what supervision asks of an instance as Celery and Django do; no row is lost.

InstanceLease.wanted_word becomes desired_state, with the same values; the state "wanted" becomes "pending".
"""

from django.db import migrations, models


def wanted_to_pending(apps, schema_editor):
    leases = apps.get_model("mq_consumer", "InstanceLease").objects.using(schema_editor.connection.alias)
    leases.filter(state="wanted").update(state="pending")


def pending_to_wanted(apps, schema_editor):
    leases = apps.get_model("mq_consumer", "InstanceLease").objects.using(schema_editor.connection.alias)
    leases.filter(state="pending").update(state="wanted")


class Migration(migrations.Migration):
    dependencies = [("mq_consumer", "0001_initial")]

    operations = [
        migrations.RenameField("instancelease", "wanted_word", "desired_state"),
        migrations.AlterField(
            "instancelease",
            "state",
            models.CharField(
                choices=[
                    ("pending", "pending"),
                    ("starting", "starting"),
                    ("running", "running"),
                    ("stopping", "stopping"),
                    ("ended", "ended"),
                ],
                default="pending",
                max_length=10,
            ),
        ),
        migrations.RunPython(wanted_to_pending, pending_to_wanted),
    ]
