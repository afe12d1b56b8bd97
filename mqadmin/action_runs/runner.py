"""Runs actions: the one way to a change, for pages, REST, Celery and command line.

`preview` shows what a run would do and writes nothing. `run` checks, carries out and audits; refusals and failures are
results like any other. Neither may be called inside a transaction: a claim must be seen by other processes at once.
Everywhere `cluster_name` is "" for an action about the installation itself. The same action on many subjects:
`many.py`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.core.exceptions import ValidationError
from django.forms import Form
from django.utils.translation import gettext as _
from django.utils.translation import override

from mqadmin.action_runs import runs
from mqadmin.action_runs.models import ActionRun
from mqadmin.action_runs.runs import Attempt, Conflict, InProgress, Refusal, Result
from mqadmin.actions import registry
from mqadmin.actions.arguments import (
    InvalidArguments,
    arguments_form,
    arguments_json,
    read_arguments,
    without_contents,
)
from mqadmin.actions.declaration import (
    Action,
    ActionRefused,
    ActionUnavailable,
    AnyAction,
    ItemOutcome,
    ItemState,
    Preview,
)
from mqadmin.audit.models import ACTION_CHARS_MAX, ACTOR_CHARS_MAX, CLUSTER_CHARS_MAX, Outcome
from mqadmin.clusters.models import Cluster
from mqadmin.people import access
from mqadmin.people.caller import Caller
from mqadmin.people.current_caller import acting_as

logger = logging.getLogger(__name__)

# What the audit is written in, and everything else that is read by people of several languages.
AUDIT_LANGUAGE = "en"
_AS_WANTED = (ItemState.DONE, ItemState.UNCHANGED)


class PermissionRefused(ActionRefused):
    """The caller does not have the action's permission."""


class WrongTarget(LookupError):
    """A cluster is named for an action about the installation, or none for one about a cluster."""


def find_cluster(name: str) -> Cluster | None:
    """Returns the cluster of that name, if there is one."""
    return Cluster.objects.filter(name=name).first()


def may(
    caller: Caller, action_name: str, cluster_name: str, find: Callable[[str], Cluster | None] = find_cluster
) -> bool:
    """Returns whether the caller may run the action on the cluster, at least for their own account.

    `find` finds the cluster: who asks for several actions has it looked up once. Raises UnknownAction, WrongTarget.
    """
    action = registry.find(action_name)
    _check_target(action, cluster_name)
    cluster = find(cluster_name) if cluster_name else None
    own = {action.own_argument: caller.name} if action.own_argument else {}
    return (cluster is not None or not cluster_name) and _may(caller, action, cluster, own)


def form(action_name: str, cluster_name: str, subject: str = "", data: Mapping[str, Any] | None = None) -> Form:
    """Returns the form of an action's arguments. Raises UnknownAction, WrongTarget, Cluster.DoesNotExist."""
    action = registry.find(action_name)
    return arguments_form(action, _target(action, cluster_name), subject, data)


def preview(caller: Caller, action_name: str, cluster_name: str, values: Mapping[str, Any]) -> Preview[Any]:
    """Returns what a run would do; nothing is changed or audited.

    Raises UnknownAction, WrongTarget, Cluster.DoesNotExist, PermissionRefused, InvalidArguments, ActionRefused,
    ActionUnavailable.
    """
    action = registry.find(action_name)
    cluster = _target(action, cluster_name)
    _check_permission(caller, action, cluster, values)
    _check_read_only(cluster)
    with acting_as(caller):
        return _preview(action, cluster, read_arguments(action, cluster, values))


def run(
    caller: Caller,
    action_name: str,
    cluster_name: str,
    values: Mapping[str, Any],
    *,
    key: str = "",
    fingerprint: str | None = None,
    confirmation: str = "",
    batch: uuid.UUID | None = None,
) -> Result | InProgress:
    """Carries an action out, once per `key`, and audits it.

    `fingerprint` is that of the preview which the person decided on; None where nobody looked at one. `confirmation` is
    the subject's name where the action asks for it. `batch` is what runs of one `run_many` have in common. Raises
    UnknownAction, WrongTarget and Cluster.DoesNotExist.

    The result's sentences are English, whoever asks: they are the audit's, which people of all languages read.
    """
    with override(AUDIT_LANGUAGE), acting_as(caller):
        return _run(caller, action_name, cluster_name, values, key, fingerprint, confirmation, batch)


def _run(
    caller: Caller,
    action_name: str,
    cluster_name: str,
    values: Mapping[str, Any],
    key: str,
    fingerprint: str | None,
    confirmation: str,
    batch: uuid.UUID | None,
) -> Result | InProgress:
    action = registry.find(action_name)
    cluster = _target(action, cluster_name)
    attempt = Attempt(
        actor=caller.name,
        action=action.name,
        cluster=cluster_name,
        subject_kind=action.subject,
        subject=str(values.get(action.subject, "")),
        arguments=runs.shortened(without_contents(action, values)),
        origin=caller.origin,
        batch=batch,
    )
    try:
        _check_permission(caller, action, cluster, values)
        _check_read_only(cluster)
        arguments = read_arguments(action, cluster, values)
    except PermissionRefused as error:
        return replace(runs.refused(attempt, str(error)), refusal=Refusal.PERMISSION)
    except ActionRefused as error:
        return replace(runs.refused(attempt, str(error)), refusal=Refusal.READ_ONLY)
    except InvalidArguments as error:
        return replace(runs.refused(attempt, str(error)), refusal=Refusal.ARGUMENTS, errors=error.errors)
    given = without_contents(action, arguments_json(arguments))
    attempt = replace(attempt, arguments=given, subject=str(given[action.subject]))
    claimed = runs.claim(attempt, key)
    match claimed:
        case Conflict(refusal, reason):
            return replace(runs.refused(attempt, reason), refusal=refusal)
        case Result() | InProgress():
            return claimed
    return _run_claimed(action, cluster, arguments, claimed, fingerprint, confirmation)


def refuse_unknown(
    caller: Caller, actor: str, action_name: str, cluster_name: str, values: Mapping[str, Any], reason: str
) -> Result:
    """Audits a wish that could not even be asked: an action, a cluster or an account that is not there.

    For ways in that have nobody to tell, such as a scheduled job.
    """
    attempt = Attempt(
        actor=actor[:ACTOR_CHARS_MAX],
        action=action_name[:ACTION_CHARS_MAX],
        cluster=cluster_name[:CLUSTER_CHARS_MAX],
        subject_kind="",
        subject="",
        arguments=runs.shortened(without_contents(registry.ACTIONS.get(action_name), values)),
        origin=caller.origin,
    )
    return replace(runs.refused(attempt, reason), refusal=Refusal.ARGUMENTS)


def _run_claimed(
    action: AnyAction,
    cluster: Cluster | None,
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
    action: AnyAction, cluster: Cluster | None, arguments: Any, found: Preview[Any], claimed: ActionRun
) -> Result:
    items: list[ItemOutcome] = []
    reason = ""
    try:
        for item in _items(action, cluster, arguments, found):
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


def _target(action: AnyAction, cluster_name: str) -> Cluster | None:
    _check_target(action, cluster_name)
    return Cluster.objects.get(name=cluster_name) if cluster_name else None


def _check_target(action: AnyAction, cluster_name: str) -> None:
    if isinstance(action, Action) and not cluster_name:
        raise WrongTarget(f"{action.name} is about a cluster: name one")
    if not isinstance(action, Action) and cluster_name:
        raise WrongTarget(f"{action.name} is about the installation: name no cluster")


def _preview(action: AnyAction, cluster: Cluster | None, arguments: Any) -> Preview[Any]:
    try:
        if isinstance(action, Action):
            assert cluster is not None
            return action.preview(cluster, arguments)
        return action.preview(arguments)
    except ValidationError as error:
        raise InvalidArguments.of(error) from error


def _items(action: AnyAction, cluster: Cluster | None, arguments: Any, found: Preview[Any]) -> Iterator[ItemOutcome]:
    if isinstance(action, Action):
        assert cluster is not None
        return action.carry_out(cluster, arguments, found)
    return action.carry_out(arguments, found)


def _may(caller: Caller, action: AnyAction, cluster: Cluster | None, values: Mapping[str, Any]) -> bool:
    if action.own_argument and caller.person.is_active and values.get(action.own_argument) == caller.name:
        return caller.scope is None or caller.scope.allows(action.permission, cluster)
    return access.may(caller.person, action.permission, cluster, caller.scope)


def _check_permission(caller: Caller, action: AnyAction, cluster: Cluster | None, values: Mapping[str, Any]) -> None:
    if not _may(caller, action, cluster, values):
        words = _("Your account lacks the right to do this (%(title)s): ask an administrator of this console for it.")
        raise PermissionRefused(words % {"title": action.title})


def _check_read_only(cluster: Cluster | None) -> None:
    if cluster is not None and access.is_read_only(cluster):
        words = _("%(cluster)s is read-only here: an administrator can lift that.")
        raise ActionRefused(words % {"cluster": cluster.name})


def _internal_error() -> str:
    return _("The console made a mistake; its log says which.")
