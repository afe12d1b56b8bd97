"""Runs actions: the one way to a change, for pages, REST, Celery and command line.

`preview` shows what a run would do and writes nothing. `run` checks, carries out and audits; refusals and failures are
results like any other. Neither may be called inside a transaction: a claim must be seen by other processes at once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.core.exceptions import ValidationError
from django.forms import Form
from django.utils.translation import gettext as _

from mqadmin.actions import registry, runs
from mqadmin.actions.arguments import InvalidArguments, arguments_form, arguments_json, read_arguments
from mqadmin.actions.declaration import (
    Action,
    ActionRefused,
    ActionUnavailable,
    ItemOutcome,
    ItemState,
    Preview,
)
from mqadmin.actions.models import ActionRun
from mqadmin.actions.runs import Attempt, Conflict, InProgress, Refusal, Result
from mqadmin.audit.models import Outcome
from mqadmin.clusters.models import Cluster

logger = logging.getLogger(__name__)

Person = AbstractBaseUser | AnonymousUser

_AS_WANTED = (ItemState.DONE, ItemState.UNCHANGED)


class PermissionRefused(ActionRefused):
    """The person does not have the action's permission."""


def may(person: Person, action_name: str) -> bool:
    """Returns whether the person has the action's permission. Raises UnknownAction."""
    return isinstance(person, PermissionsMixin) and person.has_perm(registry.find(action_name).permission)


def form(action_name: str, cluster_name: str, subject: str = "", data: Mapping[str, Any] | None = None) -> Form:
    """Returns the form of an action's arguments. Raises UnknownAction, Cluster.DoesNotExist."""
    return arguments_form(registry.find(action_name), Cluster.objects.get(name=cluster_name), subject, data)


def preview(person: Person, action_name: str, cluster_name: str, values: Mapping[str, Any]) -> Preview[Any]:
    """Returns what a run would do; nothing is changed or audited.

    Raises UnknownAction, Cluster.DoesNotExist, PermissionRefused, InvalidArguments, ActionRefused, ActionUnavailable.
    """
    action, cluster = registry.find(action_name), Cluster.objects.get(name=cluster_name)
    _check_permission(person, action)
    return _preview(action, cluster, read_arguments(action, cluster, values))


def run(
    person: Person,
    action_name: str,
    cluster_name: str,
    values: Mapping[str, Any],
    *,
    key: str = "",
    fingerprint: str | None = None,
    confirmation: str = "",
) -> Result | InProgress:
    """Carries an action out, once per `key`, and audits it.

    `fingerprint` is that of the preview which the person decided on; None where nobody looked at one. `confirmation` is
    the subject's name where the action asks for it. Raises UnknownAction and Cluster.DoesNotExist.
    """
    action, cluster = registry.find(action_name), Cluster.objects.get(name=cluster_name)
    attempt = Attempt(
        actor=person.get_username(),
        action=action.name,
        cluster=cluster.name,
        subject_kind=action.subject,
        subject=str(values.get(action.subject, "")),
        arguments=runs.shortened(values),
    )
    try:
        _check_permission(person, action)
        arguments = read_arguments(action, cluster, values)
    except PermissionRefused as error:
        return replace(runs.refused(attempt, str(error)), refusal=Refusal.PERMISSION)
    except InvalidArguments as error:
        return replace(runs.refused(attempt, str(error)), refusal=Refusal.ARGUMENTS, errors=error.errors)
    attempt = replace(attempt, arguments=arguments_json(arguments), subject=getattr(arguments, action.subject))
    claimed = runs.claim(attempt, key)
    match claimed:
        case Conflict(refusal, reason):
            return replace(runs.refused(attempt, reason), refusal=refusal)
        case Result() | InProgress():
            return claimed
    return _run_claimed(action, cluster, arguments, claimed, fingerprint, confirmation)


def _run_claimed(
    action: Action[Any, Any],
    cluster: Cluster,
    arguments: Any,
    claimed: ActionRun,
    fingerprint: str | None,
    confirmation: str,
) -> Result:
    def refuse(refusal: Refusal, reason: str) -> Result:
        return replace(runs.cancel(claimed, Outcome.REFUSED, reason), refusal=refusal)

    if action.is_confirmed_by_name and confirmation != claimed.subject:
        words = _("Type the name %(subject)s to confirm. Nothing was changed.")
        return refuse(Refusal.CONFIRMATION, words % {"subject": claimed.subject})
    try:
        found = _preview(action, cluster, arguments)
    except InvalidArguments as error:
        return replace(refuse(Refusal.ARGUMENTS, str(error)), errors=error.errors)
    except ActionRefused as error:
        return refuse(Refusal.RULE, str(error))
    except ActionUnavailable as error:
        return runs.cancel(claimed, Outcome.FAILED, str(error))
    except Exception:
        logger.exception("the preview of %s failed", claimed)
        return runs.cancel(claimed, Outcome.FAILED, _internal_error())
    if fingerprint is not None and fingerprint != found.fingerprint:
        words = _("%(subject)s has changed since this page was opened. Nothing was done: look at what it is now.")
        return refuse(Refusal.STALE, words % {"subject": claimed.subject})
    return _carry_out(action, cluster, arguments, found, claimed)


def _carry_out(
    action: Action[Any, Any], cluster: Cluster, arguments: Any, found: Preview[Any], claimed: ActionRun
) -> Result:
    items: list[ItemOutcome] = []
    reason = ""
    try:
        for item in action.carry_out(cluster, arguments, found):
            items.append(item)
    except Exception:
        logger.exception("%s failed after %d of %d items", claimed, len(items), len(found.changes))
        reason = _internal_error()
    settled = {one.item for one in items}
    items += [change.unknown(_("No outcome is known.")) for change in found.changes if change.item not in settled]
    outcome = outcome_of(items)
    undo = action.undo(arguments, items) if outcome in (Outcome.DONE, Outcome.PARTIAL) else None
    return runs.finish(claimed, outcome, items, reason=reason, undo=undo)


def outcome_of(items: Sequence[ItemOutcome]) -> Outcome:
    """Returns the outcome of a run by the states of its items."""
    good = sum(one.state in _AS_WANTED for one in items)
    if good == len(items):
        return Outcome.DONE
    if good:
        return Outcome.PARTIAL
    return Outcome.UNKNOWN if any(one.state == ItemState.UNKNOWN for one in items) else Outcome.FAILED


def _preview(action: Action[Any, Any], cluster: Cluster, arguments: Any) -> Preview[Any]:
    try:
        return action.preview(cluster, arguments)
    except ValidationError as error:
        raise InvalidArguments.of(error) from error


def _check_permission(person: Person, action: Action[Any, Any]) -> None:
    if not may(person, action.name):
        words = _("Your account lacks the right to do this (%(title)s): ask an administrator of this console for it.")
        raise PermissionRefused(words % {"title": action.title})


def _internal_error() -> str:
    return _("The console made a mistake; its log says which.")
