from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from mqadmin.deadletters.migrations._rewriting import rewrite_words
from mqadmin.deadletters.migrations._texts import words_text

IS_LISTED, IS_ARCHIVED = models.Q(archived_at=None), models.Q(archived_at__isnull=False)


def write_words(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Makes what is indexed already searchable by attempts and by the sender's properties."""
    rewrite_words(apps, "dead_letter__kept", lambda row: words_text(row.dead_letter, row.dead_letter.kept.properties))


class AddIndexBeside(migrations.AddIndex):
    """Adds an index while others write: on PostgreSQL CONCURRENTLY. One that was left half made is made anew."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002 - Django's signature
        to_state: ProjectState,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        is_postgresql = schema_editor.connection.vendor == "postgresql"
        beside, options = ("CONCURRENTLY ", {"concurrently": True}) if is_postgresql else ("", {})
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX {beside}IF EXISTS {name}")
        schema_editor.add_index(model, self.index, **options)


def born_in(*fields: str, name: str) -> list[AddIndexBeside]:
    """Returns the two indexes by the time of the first sending: of what is listed, and of what is archived."""
    latest = [*fields, "-born_at", "-id"]
    return [
        AddIndexBeside("deadletter", models.Index(fields=latest, name=name, condition=IS_LISTED)),
        AddIndexBeside("deadletter", models.Index(fields=latest, name=f"{name}_arch", condition=IS_ARCHIVED)),
    ]


class Migration(migrations.Migration):
    # Millions of rows, and a service that writes: no transaction over all.
    atomic = False

    dependencies = [("mq_deadletters", "0004_search")]

    operations = [
        *born_in("cluster", name="mq_dead_born"),
        *born_in("cluster", "group_name", name="mq_dead_born_of_group"),
        *born_in("failure", name="mq_dead_born_of_failure"),
        AddIndexBeside(
            "failure",
            models.Index(fields=["cluster", "origin_topic", "-last_dead_at", "-id"], name="mq_failure_latest_of_topic"),
        ),
        migrations.RunPython(write_words, migrations.RunPython.noop),
    ]
