from __future__ import annotations

import re
from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from mqadmin.deadletters.migrations._rewriting import rewrite_words

SIGNS = re.compile(r"[\W_]+")


def write_words(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Makes what is indexed already searchable by broker and queue."""
    rewrite_words(apps, "dead_letter", with_place)


def with_place(row: Any) -> str:
    """Returns the words of a row, with those of its broker and queue at the end."""
    dead, there = row.dead_letter, row.words.split()
    words = (SIGNS.sub("", dead.broker_name).lower(), f"queue{dead.queue_id}")
    return f" {' '.join([*there, *(word for word in words if word and word not in there)])} "


class Migration(migrations.Migration):
    # Millions of rows, and a service that writes: no transaction over all.
    atomic = False

    dependencies = [("mq_deadletters", "0005_further_fields")]

    operations = [migrations.RunPython(write_words, migrations.RunPython.noop)]
