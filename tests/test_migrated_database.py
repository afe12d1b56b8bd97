from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django_celery_beat.models import PeriodicTask

from mqadmin import beat
from mqadmin.people.roles import Role
from tests.support.migrated_database import FOLDER, KEPT_COPIES_MAX, ROOT, imported_modules


def test_modules_that_a_migration_imports_are_found_in_each_form() -> None:
    lines = ("import re", "import mqadmin.clusters.ordering", "from mqadmin.audit import chain, triggers")
    found = [str(path.relative_to(ROOT)) for path in imported_modules("\n".join(lines))]
    assert found == ["mqadmin/clusters/ordering.py", "mqadmin/audit/chain.py", "mqadmin/audit/triggers.py"]


@pytest.mark.sqlite
@pytest.mark.django_db
def test_a_database_made_from_a_copy_has_what_hooks_write_after_migrations() -> None:
    assert set(Group.objects.values_list("name", flat=True)) >= set(Role)
    assert set(PeriodicTask.objects.values_list("name", flat=True)) >= {entry.name for entry in beat.ENTRIES}
    assert 1 <= len(list(FOLDER.glob("*.sqlite3"))) <= KEPT_COPIES_MAX
