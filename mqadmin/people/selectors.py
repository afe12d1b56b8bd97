"""What the pages of people read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, QuerySet

from mqadmin.people import access, log_ins, persons
from mqadmin.people.models import ClusterRole, LogIn
from mqadmin.people.roles import Role, highest

PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class PersonRow:
    """An account, its role for all clusters (None: none) and those for single ones."""

    account: User
    role: Role | None
    cluster_roles: tuple[ClusterRole, ...]
    log_in_count: int

    @property
    def name(self) -> str:
        return self.account.get_username()

    @property
    def last_log_in(self) -> datetime | None:
        return self.account.last_login


@dataclass(frozen=True, slots=True)
class PersonPage:
    """An account with its open log-ins, newest first."""

    row: PersonRow
    log_ins: tuple[LogIn, ...]


def people(text: str = "", after: str = "") -> tuple[list[PersonRow], str]:
    """Returns accounts by name, those after a name, and the name to go on from ("": the end). Four queries."""
    rows = rows_after(matching(text), after, PAGE_SIZE + 1)
    return rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].name if len(rows) > PAGE_SIZE else ""


def matching(text: str = "") -> QuerySet[User]:
    """Returns the accounts with the text in their names, in no order."""
    found: QuerySet[User] = persons.accounts().all()
    return found.filter(username__icontains=text) if text else found


def rows_after(found: QuerySet[User], after: str, size: int) -> list[PersonRow]:
    """Returns at most `size` of the accounts by name, behind a name. Four queries."""
    return _rows(list(found.filter(username__gt=after).order_by("username").prefetch_related("groups")[:size]))


def person(name: str) -> PersonPage:
    """Returns one account. Raises the account's DoesNotExist."""
    account = persons.accounts().prefetch_related("groups").get(username=name)
    (row,) = _rows([account])
    return PersonPage(row, tuple(log_ins.open_log_ins(account.pk)[:PAGE_SIZE]))


def _rows(accounts: list[User]) -> list[PersonRow]:
    pks = [one.pk for one in accounts]
    cluster_roles = access.all_roles(pks)
    counts = dict(log_ins.open_of(pks).values_list("person").annotate(Count("pk")).order_by())
    return [PersonRow(one, _role(one), tuple(cluster_roles.get(one.pk, ())), counts.get(one.pk, 0)) for one in accounts]


def _role(account: User) -> Role | None:
    if account.is_superuser:
        return Role.ADMIN
    return highest(frozenset(Role(group.name) for group in account.groups.all() if group.name in set(Role)))
