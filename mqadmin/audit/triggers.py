"""The database's own refusal to change what was audited: UPDATE and DELETE fail, for whoever asks.

Entries up to a cut may be deleted, since that is what a cut says; nothing may be updated, and no cut deleted. SQLite
loses the triggers of a table when a migration makes the table anew, so they are installed after every migration
(`apps.py`), and a migration that rewrites entries must drop them first. SQLite's REPLACE deletes a row without asking
the triggers of DELETE, so no row may come in another's place. Only the columns that are unique are read here.
"""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

_ENTRY, _CUT = "mq_audit_auditentry", "mq_audit_auditcut"
_REFUSAL = "the audit is append-only"
_ITS_CUT = "SELECT 1 FROM mq_audit_auditcut WHERE through >= OLD.number"
_SAME_ENTRY = "SELECT 1 FROM mq_audit_auditentry WHERE id = NEW.id OR number = NEW.number OR run = NEW.run"
_SAME_CUT = "SELECT 1 FROM mq_audit_auditcut WHERE id = NEW.id OR through = NEW.through"

_SQLITE = {
    "mq_audit_entry_update": f"BEFORE UPDATE ON {_ENTRY} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    "mq_audit_entry_delete": (
        f"BEFORE DELETE ON {_ENTRY} WHEN NOT EXISTS ({_ITS_CUT}) BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    ),
    "mq_audit_entry_replace": (
        f"BEFORE INSERT ON {_ENTRY} WHEN EXISTS ({_SAME_ENTRY}) BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    ),
    "mq_audit_cut_replace": (
        f"BEFORE INSERT ON {_CUT} WHEN EXISTS ({_SAME_CUT}) BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    ),
    "mq_audit_cut_update": f"BEFORE UPDATE ON {_CUT} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    "mq_audit_cut_delete": f"BEFORE DELETE ON {_CUT} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
}

_RAISE = f"RAISE EXCEPTION '{_REFUSAL}' USING ERRCODE = 'restrict_violation';"
_FUNCTIONS = (
    f"CREATE OR REPLACE FUNCTION mq_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_RAISE} END $$",
    "CREATE OR REPLACE FUNCTION mq_audit_refuse_uncut() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN IF EXISTS ({_ITS_CUT}) THEN RETURN OLD; END IF; {_RAISE} END $$",
)
_POSTGRESQL = {
    "mq_audit_entry_update": f"BEFORE UPDATE ON {_ENTRY} FOR EACH ROW EXECUTE FUNCTION mq_audit_refuse()",
    "mq_audit_entry_delete": f"BEFORE DELETE ON {_ENTRY} FOR EACH ROW EXECUTE FUNCTION mq_audit_refuse_uncut()",
    "mq_audit_entry_truncate": f"BEFORE TRUNCATE ON {_ENTRY} EXECUTE FUNCTION mq_audit_refuse()",
    "mq_audit_cut_update": f"BEFORE UPDATE OR DELETE ON {_CUT} FOR EACH ROW EXECUTE FUNCTION mq_audit_refuse()",
    "mq_audit_cut_truncate": f"BEFORE TRUNCATE ON {_CUT} EXECUTE FUNCTION mq_audit_refuse()",
}
_TRIGGERS = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}
_INSTALLED = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgenabled <> 'D' AND NOT tgisinternal",
}


def install(connection: BaseDatabaseWrapper) -> None:
    """Creates the triggers that are missing."""
    wanted = missing(connection)
    if not wanted:
        return
    with connection.cursor() as cursor:
        for statement in _FUNCTIONS if connection.vendor == "postgresql" else ():
            cursor.execute(statement)
        for name in wanted:
            cursor.execute(f"CREATE TRIGGER {name} {_TRIGGERS[connection.vendor][name]}")


def missing(connection: BaseDatabaseWrapper) -> list[str]:
    """Returns the names of the triggers that the database does not have."""
    with connection.cursor() as cursor:
        cursor.execute(_INSTALLED[connection.vendor])
        there = {name for (name,) in cursor.fetchall()}
    return [name for name in _TRIGGERS[connection.vendor] if name not in there]


def drop(connection: BaseDatabaseWrapper) -> None:
    """Removes the triggers, for a migration that goes back or rewrites entries."""
    with connection.cursor() as cursor:
        for name in _TRIGGERS[connection.vendor]:
            on = f" ON {_CUT if '_cut_' in name else _ENTRY}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")
