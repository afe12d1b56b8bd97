"""Celery: runs an action by its name. Its name and arguments are a contract (docs/JOBS.md). On the queue `jobs`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from celery import Task, shared_task
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.clusters.models import Cluster
from mqadmin.people.access import Scope
from mqadmin.people.caller import Caller, Way
from mqadmin.people.roles import Role

logger = logging.getLogger(__name__)

NAME = "mqadmin.run_action"


@shared_task(name=NAME, bind=True)
def run_action(
    task: Task[..., Any],
    *,
    action: str,
    identity: str,
    cluster: str = "",
    arguments: Mapping[str, Any] | None = None,
    key: str = "",
    confirmation: str = "",
    job: str = "",
    role: str = Role.ADMIN,
    clusters: Sequence[str] | None = None,
) -> str:
    """Runs an action once per `key`, and returns the number under which its run is found, as text.

    `identity` is the account that it acts for, within the bounds of `role` and `clusters` (None: all of the account's).
    `cluster` is "" for an action about the installation. Without a key it is the task's own id, so that a task that
    Celery delivers twice is carried out once. Refusals and failures are entries of the audit, not errors of the task;
    so is an action, a cluster or an account that is not there.
    """
    account = get_user_model()._default_manager.filter(username=identity).first()
    bounds = Scope(role=Role(role), clusters=None if clusters is None else frozenset(clusters))
    caller = Caller(person=account or AnonymousUser(), way=Way.CELERY, via=job, scope=bounds)
    values = dict(arguments or {})
    try:
        if account is None:
            raise LookupError(f"no account {identity}")
        result = runner.run(
            caller, action, cluster, values, key=key or task.request.id or "", confirmation=confirmation
        )
    except (LookupError, Cluster.DoesNotExist) as error:
        result = runner.refuse_unknown(caller, identity, action, cluster, values, str(error))
    if isinstance(result, Result):
        logger.info("%s on %s for %s: %s %s", action, cluster or "the console", identity, result.outcome, result.reason)
    return str(result.run_id)
