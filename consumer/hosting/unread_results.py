"""How long a process of a prefork pool that ends waits for its main process to read the results of its tasks.

It ends when all are read. But a main process that stops forgets the tasks that it has handed to a process and has not
heard to have begun (Celery's `AsynPool.flush`), and reads no results of them; the process carries such a task out all
the same. billiard lets it wait 30 s then, for nothing: longer than most give a worker to stop.
"""

from __future__ import annotations

from typing import Any

# A main process that reads at all also reads what a process that has ended left behind. With the second that billiard
# sleeps afterwards this is half of the 10 s that `up` and Docker give a worker to stop.
READ_WITHIN_S = 4.0


def wait_less_for_results(**_: Any) -> None:
    """Receives `worker_before_create_process`: the processes that are forked from now on wait READ_WITHIN_S at most."""
    from billiard import pool  # for workers alone

    pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = round(
        READ_WITHIN_S / pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_INTERVAL
    )
