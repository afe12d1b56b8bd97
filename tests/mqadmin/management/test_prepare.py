from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command

from mqadmin.clusters.models import Cluster

pytestmark = pytest.mark.django_db


def test_an_install_is_prepared_once_and_its_password_said_once() -> None:
    out = StringIO()
    call_command("prepare", stdout=out)
    assert out.getvalue().startswith("log in as admin with the password ")
    assert Cluster.objects.get().name == "local"
    again = StringIO()
    call_command("prepare", stdout=again)
    assert again.getvalue() == ""
    assert (get_user_model().objects.count(), Cluster.objects.count()) == (1, 1)
