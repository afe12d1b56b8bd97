from __future__ import annotations

from django.apps.registry import Apps
from django.db import connection, migrations, models, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

from mqadmin.deadletters.migrations._texts import words_text

ROWS_AT_ONCE = 1000
IS_LISTED, IS_ARCHIVED = models.Q(archived_at=None), models.Q(archived_at__isnull=False)
SET_WORDS = "UPDATE mq_deadletters_searchtext SET words = %s WHERE dead_letter_id = %s"
# SQLite's index of words has no trigger for rows that are updated; that of bodies has nothing to do here.
SQLITE_INDEX = "mq_deadletters_search_words"
SQLITE_TAKE_OUT = (
    "INSERT INTO mq_deadletters_search_words (mq_deadletters_search_words, rowid, words) VALUES ('delete', %s, %s)"
)
SQLITE_PUT_IN = "INSERT INTO mq_deadletters_search_words (rowid, words) VALUES (%s, %s)"


def write_words(apps: Apps, _schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Makes what is indexed already searchable by attempts and by the sender's properties.

    Bodies are neither read nor written. Each ROWS_AT_ONCE are one transaction: where it was stopped, it goes on.
    """
    texts = apps.get_model("mq_deadletters", "SearchText")
    has_index = connection.vendor == "sqlite" and SQLITE_INDEX in connection.introspection.table_names()
    last = 0
    while True:
        with transaction.atomic():
            rows = list(
                texts.objects.filter(pk__gt=last)
                # The index may write the words of one anew meanwhile, when its reason comes: that waits, and is the last.
                .select_for_update(of=("self",))
                .select_related("dead_letter__kept")
                .defer("body", "dead_letter__kept__body")
                .order_by("pk")[:ROWS_AT_ONCE]
            )
            told = [(row.pk, row.words, words_text(row.dead_letter, row.dead_letter.kept.properties)) for row in rows]
            _change([one for one in told if one[1] != one[2]], has_index=has_index)
        if len(rows) < ROWS_AT_ONCE:
            return
        last = rows[-1].pk


def _change(changed: list[tuple[int, str, str]], *, has_index: bool) -> None:
    """Writes the words of rows: number, words until now, words from now on."""
    if not changed:
        return
    with connection.cursor() as cursor:
        if has_index:
            cursor.executemany(SQLITE_TAKE_OUT, [(pk, before) for pk, before, _ in changed])
        cursor.executemany(SET_WORDS, [(after, pk) for pk, _, after in changed])
        if has_index:
            cursor.executemany(SQLITE_PUT_IN, [(pk, after) for pk, _, after in changed])


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
