"""What the actions on people have in common: finding a person, the form field of a name, the last administrator."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _

from mqadmin.people.roles import Role

NAME_CHARS_MAX = 150


def name_field(**options: Any) -> forms.CharField:
    """Returns the form field of an account's name, as Django's own accounts have it."""
    return forms.CharField(max_length=NAME_CHARS_MAX, validators=[UnicodeUsernameValidator()], **options)


def find(name: str) -> User:
    """Returns the account of that name. Raises ValidationError for the argument `person`."""
    person: User | None = accounts().filter(username=name).first()
    if person is None:
        raise ValidationError({"person": _("Nobody has the name %(name)s.") % {"name": name}})
    return person


def accounts() -> Any:
    """Returns the manager of the accounts."""
    return get_user_model()._default_manager


def is_last_administrator(person: User) -> bool:
    """Returns whether nobody else who is active administers this installation."""
    is_admin = Q(is_superuser=True) | Q(groups__name=Role.ADMIN)
    admins = set(accounts().filter(is_admin, is_active=True).values_list("pk", flat=True))
    return admins == {person.pk}


def give_group(person: User, role: str) -> None:
    """Makes `role` the person's only role for all clusters; "" for none."""
    person.groups.remove(*Group.objects.filter(name__in=list(Role)))
    if role:
        person.groups.add(Group.objects.get(name=role))
