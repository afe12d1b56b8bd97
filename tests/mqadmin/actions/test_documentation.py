"""docs/ACTIONS.md names every action with its permission and its arguments, and no other."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission

from mqadmin.actions import registry
from mqadmin.console.action_pages import PAGES

PAGE = (Path(__file__).parents[3] / "docs" / "ACTIONS.md").read_text(encoding="utf-8")


def test_the_table_of_actions_is_that_of_the_registry() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| `([\w.]+)` \| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    documented = {name: (about, right, re.findall(r"\w+", words)) for name, about, right, words in rows}
    declared = {
        name: (one.subject, one.permission, [field.name for field in dataclasses.fields(one.arguments)])
        for name, one in registry.ACTIONS.items()
    }
    assert documented == declared


def test_each_action_has_a_page() -> None:
    assert set(PAGES) == set(registry.ACTIONS)


@pytest.mark.django_db
def test_each_permission_exists() -> None:
    there = {f"{app}.{code}" for app, code in Permission.objects.values_list("content_type__app_label", "codename")}
    assert {one.permission for one in registry.ACTIONS.values()} <= there


def test_every_path_that_the_page_names_exists() -> None:
    root = Path(__file__).parents[3]
    paths = re.findall(r"`((?:mqadmin|tests|docs)/[\w./-]*)`", PAGE)
    assert paths
    assert [path for path in paths if not (root / path).exists()] == []
