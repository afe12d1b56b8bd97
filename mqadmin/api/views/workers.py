"""`/workers`: the Celery workers that run instances; drained by `set_worker_draining`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqadmin.api.listing import ListResource, described
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.workers import WorkerSerializer
from mqadmin.hosting import workers as selectors


@described("list_workers", "List workers")
class Workers(ListResource):
    """Workers of the last day by name, with the instances of each; 500 at most."""

    row = WorkerSerializer
    permission = "mq_consumer.view_loopsworker"

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[selectors.Worker]:
        return RowsInMemory(selectors.workers(), lambda worker: [worker.node])
