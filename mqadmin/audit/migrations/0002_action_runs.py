"""What was asked for moves from `after` to `arguments`: an entry says both, and its outcome item by item."""

import uuid

from django.db import migrations, models

OUTCOMES = [
    ("done", "done"),
    ("partial", "done in part"),
    ("failed", "failed"),
    ("unknown", "not known"),
    ("refused", "refused"),
]


def complete_entries(apps, _schema_editor):
    """Until now there was one action, which set how many instances of a group are wanted."""
    for entry in apps.get_model("mq_audit", "AuditEntry").objects.iterator():
        entry.run = uuid.uuid4()
        wanted = entry.after.get("wanted_instances")
        entry.arguments = {"group": entry.subject, "wanted": wanted}
        if entry.outcome == "done":
            entry.items = [{"item": "", "state": "done", "words": ""}]
            before = entry.before.get("wanted_instances")
            entry.undo = {"action": entry.action, "arguments": {"group": entry.subject, "wanted": before}}
        else:
            entry.after = {}
        entry.save()


class Migration(migrations.Migration):
    dependencies = [("mq_audit", "0001_initial")]

    operations = [
        migrations.AddField("auditentry", "arguments", models.JSONField(blank=True, default=dict)),
        migrations.AddField("auditentry", "items", models.JSONField(blank=True, default=list)),
        migrations.AddField("auditentry", "undo", models.JSONField(blank=True, null=True)),
        migrations.AddField("auditentry", "run", models.UUIDField(null=True)),
        migrations.AlterField("auditentry", "outcome", models.CharField(choices=OUTCOMES, max_length=8)),
        migrations.AlterField("auditentry", "reason", models.CharField(blank=True, default="", max_length=2000)),
        migrations.RunPython(complete_entries, migrations.RunPython.noop),
        migrations.AlterField("auditentry", "run", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
    ]
