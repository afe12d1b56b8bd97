from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def begin_anew(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Clears what was kept of failures: its samples don't say which brokers they are of."""
    apps.get_model("mq_lag", "LagHistory").objects.exclude(failing=b"").update(failing=b"")


class Migration(migrations.Migration):
    dependencies = [
        ("mq_lag", "0003_failing_groups"),
    ]

    operations = [
        migrations.RunPython(begin_anew, begin_anew),
    ]
