from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mq_deadletter_rules", "0002_gaps")]

    operations = [
        migrations.AddField(
            model_name="deadletterrule", name="began_behind_id", field=models.BigIntegerField(default=0)
        ),
    ]
