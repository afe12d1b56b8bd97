"""`…/replays/`: the replays of a cluster; one with its counts and its ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.forms import DateTimeField
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from mqadmin.action_runs import runner
from mqadmin.clusters import selectors
from mqadmin.console.live_page import live_page
from mqadmin.live.events import ChangeKind
from mqadmin.live.subscriptions import Subscription
from mqadmin.people import access
from mqadmin.replay_files.models import ReplayFile
from mqadmin.replays import selectors as replay_selectors
from mqadmin.replays.becoming import Became
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.selectors import DEAD_AGAIN, FAILED
from mqadmin.replays.states import ENDED, EntryState, JobState, Target

CHANGE = "mq_replays.change_replayjob"


@require_safe
def replays(request: HttpRequest, cluster: str) -> HttpResponse:
    group, before = request.GET.get("group", "")[:255], request.GET.get("before", "")
    return live_page(
        request,
        "replays",
        lambda: _replays(cluster, group, before),
        shows=[Subscription(cluster, kinds=(ChangeKind.REPLAYS,))],
        cluster=cluster,
        section="replays",
    )


def _replays(cluster: str, group: str, before: str) -> dict[str, Any]:
    head = selectors.cluster_head(cluster)
    page = replay_selectors.replays(head, group).page(before)
    older = f"?{_query(group=group, before=page.older)}" if page.older else ""
    return {"head": head, "group": group, "jobs": page.rows, "older_url": older, "now": timezone.now()}


@require_safe
def replay(request: HttpRequest, cluster: str, replay: str) -> HttpResponse:
    """Shows one replay. What changes it stands on the page alone, since a region is rendered for all viewers alike."""
    state, before = request.GET.get("state", ""), request.GET.get("before", "")
    return live_page(
        request,
        "replay",
        lambda: _replay(cluster, replay, state, before),
        shows=[Subscription(cluster, kinds=(ChangeKind.REPLAYS, ChangeKind.DEAD_LETTERS))],
        cluster=cluster,
        section="replays",
        permissions=[CHANGE],
    )


def _replay(cluster: str, number: str, state: str, before: str) -> dict[str, Any]:
    head = selectors.cluster_head(cluster)
    if not (number.isascii() and number.isdigit() and len(number) <= 18):
        raise ReplayJob.DoesNotExist(gettext("There is no such replay."))
    job = replay_selectors.replay(head, int(number))
    state = state if state in {*EntryState.values, FAILED, DEAD_AGAIN} else ""
    page = replay_selectors.ledger(job, state).page(before)
    times = replay_selectors.attempts_max(job)
    return {
        "head": head,
        "job": job,
        "now": timezone.now(),
        "state": state,
        "counts": _counts(job),
        "is_open": job.state not in ENDED,
        "is_running": job.state == JobState.RUNNING,
        "is_preparing": job.state == JobState.RUNNING and job.frozen_at is None,
        "target": target_words(job),
        "selected_by": _selected_by(cluster, job),
        "file_is_kept": "file" in job.selection and ReplayFile.objects.filter(pk=job.selection["file"]).exists(),
        "entries": [(entry, _became(entry, times)) for entry in page.rows],
        "older_url": f"?{_query(state=state, before=page.older)}" if page.older else "",
        "settled": job.total_count - job.waiting_count - job.sending_count,
        "place": reverse("replay", args=[cluster, job.pk]),
    }


class SelectedBy(NamedTuple):
    """One thing that the selection of a replay says, under its word on the form that starts one."""

    label: str
    text: str = ""
    url: str = ""
    moment: datetime | None = None


def _selected_by(cluster: str, job: ReplayJob) -> list[SelectedBy]:
    """Returns by what the dead letters are selected; nothing: all of the group."""
    fields = runner.form("start_replay", cluster, job.group_name).fields
    found = []
    # In the order of the form: PostgreSQL keeps no order of a selection's own.
    for name, field in fields.items():
        if name not in job.selection:
            continue
        value, label = job.selection[name], str(field.label)
        if name == "failure":
            found.append(SelectedBy(label, str(value), url=reverse("failure", args=[cluster, value])))
        elif name == "archived":
            found.append(SelectedBy(label, gettext("yes")))
        elif isinstance(field, DateTimeField):
            found.append(SelectedBy(label, moment=datetime.fromisoformat(value)))
        elif isinstance(value, list):
            found.append(SelectedBy(label, " ".join(str(one) for one in value)))
        else:
            found.append(SelectedBy(label, str(value)))
    return found


def _counts(job: ReplayJob) -> list[tuple[str, str, int]]:
    """Returns (state, words, count) of each state, and how many failed again."""
    counts = [(one.value, str(one.label), getattr(job, f"{one.value}_count")) for one in EntryState]
    return [
        *counts,
        (FAILED, gettext("failed again"), job.failed_count),
        (DEAD_AGAIN, gettext("dead letters again"), job.dead_again_count),
    ]


def _became(entry: ReplayEntry, attempts_max: int | None) -> str:
    """Returns what is known of a message after it was sent."""
    if entry.became is None:
        return ""
    words = str(Became(entry.became).label)
    if not entry.failed_attempt or entry.became == Became.DEAD_AGAIN:
        return words
    if attempts_max is None:
        return gettext("%(what)s (attempt %(n)d)") % {"what": words, "n": entry.failed_attempt}
    return gettext("%(what)s (attempt %(n)d of %(m)d)") % {
        "what": words,
        "n": entry.failed_attempt,
        "m": attempts_max,
    }


def target_words(job: ReplayJob) -> str:
    if job.target == Target.TOPIC:
        return gettext("topic %(topic)s") % {"topic": job.target_topic}
    return str(Target(job.target).label)


@require_safe
def replay_by_number(request: HttpRequest, number: int) -> HttpResponse:
    """Leads from the short address to the page, whoever may see the cluster."""
    found = replay_selectors.cluster_of(number)
    if found is None or not access.visible_clusters(request.user).filter(pk=found.pk).exists():
        raise Http404
    return redirect("replay", found.name, number)


def _query(**values: str) -> str:
    query = QueryDict(mutable=True)
    query.update({name: value for name, value in values.items() if value})
    return query.urlencode()
