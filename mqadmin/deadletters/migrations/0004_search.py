from __future__ import annotations

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from mqadmin.deadletters.migrations._texts import searched_body, words_text

ROWS_AT_ONCE = 1000


def write_texts(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Makes what is indexed already searchable."""
    kept, texts = apps.get_model("mq_deadletters", "KeptMessage"), apps.get_model("mq_deadletters", "SearchText")
    last = 0
    while True:
        rows = list(kept.objects.filter(pk__gt=last).select_related("dead_letter").order_by("pk")[:ROWS_AT_ONCE])
        texts.objects.bulk_create(
            texts(
                dead_letter_id=row.pk,
                words=words_text(row.dead_letter, row.properties),
                body=searched_body(row.dead_letter, bytes(row.body) if row.body is not None else None),
            )
            for row in rows
        )
        if len(rows) < ROWS_AT_ONCE:
            return
        last = rows[-1].pk


class Migration(migrations.Migration):
    dependencies = [("mq_deadletters", "0003_mended_copy")]

    operations = [
        migrations.CreateModel(
            name="SearchText",
            fields=[
                (
                    "dead_letter",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="search_text",
                        serialize=False,
                        to="mq_deadletters.deadletter",
                    ),
                ),
                ("words", models.TextField(blank=True, default="")),
                ("body", models.TextField(blank=True, default="")),
            ],
        ),
        migrations.RunPython(write_texts, migrations.RunPython.noop),
    ]
