"""`…/replay-files`: exports of dead letters, perhaps changed since, sent back to be replayed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.action_runs import runner
from mqadmin.api.access import caller_of
from mqadmin.api.listing import ListQuery, ListResource, described
from mqadmin.api.parsers import CsvParser, JsonLinesParser
from mqadmin.api.problems import READ_ONLY, RULE, TOO_LARGE, Problem
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.replay_files import (
    FileLineSerializer,
    ReplayFileDetailSerializer,
    ReplayFileSerializer,
)
from mqadmin.clusters import selectors
from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.people import access
from mqadmin.replay_files import selectors as file_selectors
from mqadmin.replay_files.models import FileMessage, ReplayFile
from mqadmin.replay_files.storing import FileRefused, FileTooLarge, store

CHUNK_BYTES = 256 * 1024
NAME = OpenApiParameter("name", {"type": "string", "maxLength": NAME_CHARS_MAX}, description="What people know it by.")
FILE = dict.fromkeys(("application/jsonl", "text/csv"), OpenApiTypes.BINARY)


@extend_schema_view(
    post=extend_schema(
        operation_id="send_replay_file",
        summary="Send a file of dead letters",
        description="Reads it line by line. 201: it is new; 200: the same file is there already.",
        parameters=[NAME],
        request=FILE,
        responses={201: ReplayFileDetailSerializer, 200: ReplayFileDetailSerializer},
    )
)
@described("list_replay_files", "List files of dead letters")
class ReplayFiles(ListResource):
    """Files that were sent to a cluster to be replayed, the latest first."""

    row = ReplayFileSerializer
    parser_classes = (JsonLinesParser, CsvParser)

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ReplayFile]:
        return file_selectors.files(selectors.cluster_head(names["cluster"]))

    def post(self, request: Request, cluster: str) -> Response:
        """Takes what is written to be replayed from whoever may start replays."""
        head = selectors.cluster_head(cluster)
        caller = caller_of(request)
        if not runner.may(caller, "start_replay", cluster):
            raise PermissionDenied
        if access.is_read_only(head):
            raise Problem(
                READ_ONLY, _("%(cluster)s is read-only here: an administrator can lift that.") % {"cluster": cluster}
            )
        name = request.query_params.get("name", "")[:NAME_CHARS_MAX] or "–"
        try:
            file, is_new = store(head, name, _chunks(request.data), by=caller.name)
        except FileTooLarge as error:
            raise Problem(TOO_LARGE, str(error)) from error
        except FileRefused as error:
            raise Problem(RULE, str(error)) from error
        return Response(_detail(file), status=201 if is_new else 200)


def _chunks(stream: Any) -> Iterator[bytes]:
    """Yields what was sent; nothing where no body came, which no parser is given."""
    if isinstance(stream, Mapping):
        return
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _detail(file: ReplayFile) -> Mapping[str, Any]:
    groups = [asdict(one) for one in file_selectors.parts(file)]
    shape: Mapping[str, Any] = ReplayFileSerializer(file).data
    return {**shape, "groups": [{"group": one.pop("group_name"), **one} for one in groups]}


class ReplayFileDetail(Resource):
    """A file with what it has of each group."""

    @extend_schema(
        operation_id="get_replay_file", summary="Get a file of dead letters", responses=ReplayFileDetailSerializer
    )
    def get(self, request: Request, cluster: str, file: int) -> Response:
        return Response(_detail(file_selectors.file(selectors.cluster_head(cluster), file)))


class FileLinesQuery(ListQuery):
    wrong = serializers.BooleanField(default=False, help_text="Those that cannot be replayed, and no others.")


@described("list_file_lines", "List the lines of a file")
class ReplayFileLines(ListResource):
    """The lines of a file from its beginning on, without bodies: what is wrong with each, and what it is."""

    row = FileLineSerializer
    query = FileLinesQuery

    def rows(self, query: Mapping[str, Any], **names: Any) -> Rows[FileMessage]:
        found = file_selectors.file(selectors.cluster_head(names["cluster"]), names["file"])
        return file_selectors.lines(found, is_wrong=query["wrong"])
