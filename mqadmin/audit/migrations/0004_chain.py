"""Entries that are there are numbered and chained in the order in which they were written; then nothing changes them."""

from django.conf import settings
from django.db import migrations, models

from mqadmin.audit import chain, triggers


def chain_entries(apps, _schema_editor):
    """Numbers the entries of an older install from 1."""
    previous = ""
    for number, entry in enumerate(apps.get_model("mq_audit", "AuditEntry").objects.order_by("pk"), start=1):
        entry.number, entry.previous_hash = number, previous
        entry.hash = previous = chain.entry_hash(entry, settings.SECRET_KEY)
        entry.save()


def refuse_changes(_apps, schema_editor):
    triggers.install(schema_editor.connection)


def allow_changes(_apps, schema_editor):
    triggers.drop(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("mq_audit", "0003_origin_of_runs")]

    operations = [
        migrations.CreateModel(
            name="AuditCut",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("through", models.PositiveBigIntegerField(unique=True)),
                ("hash", models.CharField(max_length=64)),
                ("removed_count", models.PositiveBigIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("at", models.DateTimeField()),
                ("signature", models.CharField(max_length=64)),
            ],
        ),
        migrations.AddField("auditentry", "number", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("auditentry", "previous_hash", models.CharField(blank=True, default="", max_length=64)),
        migrations.AddField("auditentry", "hash", models.CharField(default="", max_length=64), preserve_default=False),
        migrations.RunPython(chain_entries, migrations.RunPython.noop),
        migrations.AlterField("auditentry", "number", models.PositiveBigIntegerField(unique=True)),
        *(
            migrations.AddIndex("auditentry", models.Index(fields=[name, "-number"], name=f"mq_audit_{name}"))
            for name in ("actor", "action", "cluster", "outcome")
        ),
        migrations.RunPython(refuse_changes, allow_changes),
    ]
