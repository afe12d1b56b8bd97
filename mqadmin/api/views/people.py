"""`/people`: who may do what. People are changed by the actions `add_person`, `give_role`, `end_log_ins`, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import ListQuery, ListResource, described, filter_field
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.people import LogInSerializer, PersonSerializer
from mqadmin.people import selectors
from mqadmin.people.models import LogIn
from mqadmin.people.selectors import PersonRow

PERMISSION = "auth.view_user"


class PeopleQuery(ListQuery):
    q = filter_field("name")


@dataclass(frozen=True, slots=True)
class PersonRows:
    """Accounts by name."""

    found: QuerySet[User]

    def after(self, position: Sequence[Any] | None, size: int) -> list[PersonRow]:
        return selectors.rows_after(self.found, position[0] if position else "", size)

    def position(self, row: PersonRow) -> list[Any]:
        return [row.name]

    def total_count(self) -> int:
        return self.found.count()


@described("list_people", "List people")
class People(ListResource):
    """Accounts by name, with their roles."""

    row = PersonSerializer
    query = PeopleQuery
    permission = PERMISSION

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[PersonRow]:
        return PersonRows(selectors.matching(query["q"].strip()))


class PersonDetail(Resource):
    """An account with its roles."""

    permission = PERMISSION

    @extend_schema(operation_id="get_person", summary="Get a person", responses=PersonSerializer)
    def get(self, request: Request, person: str) -> Response:
        return Response(PersonSerializer(selectors.person(person).row).data)


@described("list_log_ins", "List the log-ins of a person")
class LogIns(ListResource):
    """Open log-ins of a person, the newest first; 100 at most."""

    row = LogInSerializer
    permission = PERMISSION

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[LogIn]:
        page = selectors.person(names["person"])
        return RowsInMemory(page.log_ins, lambda one: [-one.at.timestamp(), one.pk])
