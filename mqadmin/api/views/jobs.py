"""`/jobs`: actions that run at their times. Made, paused and deleted by `make_job`, `set_job_running`, `delete_job`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import ListResource, described
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.jobs import JobSerializer
from mqadmin.jobs import selectors
from mqadmin.jobs.selectors import Job

PERMISSION = "django_celery_beat.view_periodictask"


@described("list_jobs", "List jobs")
class Jobs(ListResource):
    """Jobs by name, with what became of each the last time; 500 at most."""

    row = JobSerializer
    permission = PERMISSION

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Job]:
        return RowsInMemory(selectors.jobs(), lambda job: [job.name])


class JobDetail(Resource):
    """A job."""

    permission = PERMISSION

    @extend_schema(operation_id="get_job", summary="Get a job", responses=JobSerializer)
    def get(self, request: Request, job: str) -> Response:
        found = selectors.job(job)
        if found is None:
            raise Http404
        return Response(JobSerializer(found).data)
