from __future__ import annotations

import re
from io import StringIO

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command

pytestmark = pytest.mark.django_db


def said() -> str:
    out = StringIO()
    call_command("ensure_admin", stdout=out)
    return out.getvalue()


def test_first_run_makes_the_admin_and_prints_a_password_that_works() -> None:
    found = re.fullmatch(r"log in as admin with the password (\S+) \(it is not shown again\)\n", said())
    assert found is not None
    user = authenticate(username="admin", password=found[1])
    assert user is not None
    assert user.is_superuser


def test_second_run_says_and_changes_nothing() -> None:
    said()
    password = get_user_model().objects.get().password
    assert said() == ""
    assert get_user_model().objects.get().password == password


def test_no_admin_is_made_where_people_are_known() -> None:
    get_user_model().objects.create_user("ann")
    assert said() == ""
    assert get_user_model().objects.count() == 1
