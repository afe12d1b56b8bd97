from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def note_those_that_answered(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("mq_clusters", "Broker").objects.exclude(seen_at=None).update(has_told_topics=True)


class Migration(migrations.Migration):
    dependencies = [
        ("mq_clusters", "0015_time_to_drain"),
    ]

    operations = [
        migrations.AddField(
            model_name="broker",
            name="has_told_topics",
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(note_those_that_answered, migrations.RunPython.noop),
    ]
