"""People with roles, as an administrator of the console makes them, and their sessions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import AbstractUser, Group

from mqadmin.clusters.models import Cluster
from mqadmin.people.models import ClusterRole
from mqadmin.people.roles import Role


def make_person(
    name: str, role: Role | None = None, on: Cluster | None = None, password: str | None = None
) -> AbstractUser:
    """Makes an account with a role on all clusters, or on one."""
    person = get_user_model().objects.create_user(name, password=password)
    if role is not None and on is not None:
        ClusterRole.objects.create(person=person, cluster=on, role=role)
    elif role is not None:
        person.groups.add(Group.objects.get(name=role))
    return person


def give_session(client: Any, person: AbstractUser) -> None:
    """Makes the client somebody's who has been logged in for long: Django's `force_login` without the log-in itself.

    No log-in is noted and no signal sent, which most tests of pages have no use for: it took a fifth of their time.
    """
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
