"""Until now every account saw every cluster: those that are there keep that, as viewers."""

from django.conf import settings
from django.db import migrations


def make_viewers(apps, _schema_editor):
    app, model = settings.AUTH_USER_MODEL.split(".")
    accounts = apps.get_model(app, model).objects.filter(is_superuser=False)
    if accounts.exists():
        viewers, _created = apps.get_model("auth", "Group").objects.get_or_create(name="viewer")
        viewers.user_set.add(*accounts)


class Migration(migrations.Migration):
    dependencies = [("mq_people", "0001_roles_and_log_ins"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [migrations.RunPython(make_viewers, migrations.RunPython.noop)]
