"""`…/configuration/`: topics and groups as a YAML file, compared with what is there (its drift) and applied.

What is sent is compared while the person waits, and shown again below what it would change; applying it runs the
actions one by one, and ends on the page of all these runs.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from mqadmin.action_runs import runner, runs
from mqadmin.action_runs.many import BEGIN_WITHIN_S
from mqadmin.action_runs.runs import BATCH_RUNS_MAX
from mqadmin.actions import registry
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster
from mqadmin.configuration import document, planning
from mqadmin.configuration.planning import Step
from mqadmin.console.action_pages import CHANGE_TITLES
from mqadmin.console.action_values import ItemLine, item_line
from mqadmin.console.live_page import or_404
from mqadmin.people.caller import Caller, page_caller

# Encoded in a form it may become three times as long, and Django reads 1 MiB of one; 500 topics take half of it.
TEXT_BYTES_MAX = 256 * 1024
ENTRIES_MAX = 500
# A person waits for the comparison.
PLAN_WITHIN_S = 20.0
ACTIONS = ("create_topic", "create_group")


class NotComparable(Exception):
    """The file cannot be compared; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class StepLine:
    """One change that applying would make: of what, by which action, and the values before and after."""

    name: str
    line: int
    title: str
    changes: tuple[ItemLine, ...]


@require_http_methods(["GET", "HEAD", "POST"])
def configuration(request: HttpRequest, cluster: str) -> HttpResponse:
    """Asks for the file, shows what differs from it, and applies it."""
    with or_404():
        head = selectors.cluster_head(cluster)
    caller = page_caller(request)
    if not all(runner.may(caller, action, cluster) for action in ACTIONS):
        raise PermissionDenied
    if request.method != "POST":
        return _show(request, head, "")
    text = _text(request)
    is_applied = "apply" in request.POST
    batch = planning.batch_of(caller, request.POST.get("key", ""))
    if is_applied and runs.find_batch(batch):
        # A second click, while the first is under way or after it.
        return _to_runs(batch, request.POST.get("of", ""))
    try:
        steps = _compare(caller, head, text)
    except (NotComparable, document.DocumentError, planning.PlanError) as error:
        return _show(request, head, text, error=str(error), http_status=422)
    if not is_applied:
        return _show(request, head, text, steps=steps)
    if request.POST.get("fingerprint", "") != planning.fingerprint(steps):
        words = gettext("Something has changed since this page was opened. Nothing was done: look at what differs now.")
        return _show(request, head, text, steps=steps, error=words, http_status=409)
    ends = time.monotonic() + BEGIN_WITHIN_S
    for begun, _ in enumerate(planning.apply(caller, head, steps, batch), 1):
        if time.monotonic() > ends:
            return _to_runs(batch, str(begun))
    return _to_runs(batch, str(len(steps)))


def _text(request: HttpRequest) -> str:
    """Returns the file that was chosen, else what is typed; one byte more than may be at most."""
    chosen = request.FILES.get("file")
    if chosen is None:
        return request.POST.get("text", "")
    return bytes(chosen.read(TEXT_BYTES_MAX + 1)).decode(errors="replace")


def _compare(caller: Caller, cluster: Cluster, text: str) -> list[Step]:
    """Returns what differs from the file. Raises NotComparable, DocumentError, PlanError."""
    content = text.encode()
    if not content.strip():
        raise NotComparable(gettext("There is nothing to compare: choose a file, or paste its text."))
    if len(content) > TEXT_BYTES_MAX:
        raise NotComparable(gettext("The file is larger than %(n)d bytes: split it.") % {"n": TEXT_BYTES_MAX})
    entries = document.read(content)
    if len(entries) > ENTRIES_MAX:
        words = gettext("The file has %(n)d topics and groups, and may have %(most)d here: split it.")
        raise NotComparable(words % {"n": len(entries), "most": ENTRIES_MAX})
    ends = time.monotonic() + PLAN_WITHIN_S
    steps: list[Step] = []
    for entry in entries:
        if time.monotonic() > ends:
            words = gettext("The brokers answer too slowly: the file was compared up to line %(line)d. Split it.")
            raise NotComparable(words % {"line": entry.line})
        steps += planning.plan(caller, cluster, [entry])
    return steps


def _to_runs(batch: uuid.UUID, of: str) -> HttpResponse:
    return redirect(f"{reverse('many_runs', args=[batch])}?of={of}")


def _show(
    request: HttpRequest,
    cluster: Cluster,
    text: str,
    *,
    steps: list[Step] | None = None,
    error: str = "",
    http_status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "here": cluster.name,
        "section": "cluster",
        "text": text,
        "error": error,
        "is_compared": steps is not None,
        "lines": [_line(step) for step in steps or ()],
        "most": BATCH_RUNS_MAX,
        "is_applicable": steps is not None and 0 < len(steps) <= BATCH_RUNS_MAX,
        "fingerprint": planning.fingerprint(steps or ()),
        "key": uuid.uuid4(),
    }
    response = render(request, "console/configuration.html", context, status=http_status)
    add_never_cache_headers(response)
    return response


def _line(step: Step) -> StepLine:
    changes = tuple(item_line(step.entry.name, change.item, change.before, change.after) for change in step.changes)
    is_there = any(change.before for change in step.changes)
    described = step.action.startswith("describe")
    title = registry.find(step.action).title if described or not is_there else CHANGE_TITLES[step.action]
    return StepLine(step.entry.name, step.entry.line, str(title), changes)
