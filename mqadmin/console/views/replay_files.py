"""`…/replays/files/`: exports of dead letters sent back to be replayed; one with its lines."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from mqadmin.action_runs import runner
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster
from mqadmin.console.live_page import or_404
from mqadmin.people import access
from mqadmin.people.caller import page_caller
from mqadmin.replay_files import selectors as file_selectors
from mqadmin.replay_files.limits import FILE_BYTES_MAX, KEPT_DAYS, LINES_MAX
from mqadmin.replay_files.storing import FileRefused, FileTooLarge, store
from mqadmin.replays.selectors import of_file


@require_http_methods(["GET", "HEAD", "POST"])
def replay_files(request: HttpRequest, cluster: str) -> HttpResponse:
    """Lists the files of a cluster, and takes a further one from whoever may start replays."""
    with or_404():
        head = selectors.cluster_head(cluster)
    if request.method == "POST":
        return _take(request, head)
    return _list(request, head)


def _take(request: HttpRequest, head: Cluster) -> HttpResponse:
    caller = page_caller(request)
    if not runner.may(caller, "start_replay", head.name):
        raise PermissionDenied
    if access.is_read_only(head):
        words = gettext("%(cluster)s is read-only here: an administrator can lift that.")
        return _list(request, head, words % {"cluster": head.name}, 409)
    chosen = request.FILES.get("file")
    if chosen is None:
        return _list(request, head, gettext("Choose a file."), 422)
    try:
        file, _is_new = store(head, chosen.name or "–", chosen.chunks(), by=caller.name)
    except FileRefused as error:
        return _list(request, head, str(error), 413 if isinstance(error, FileTooLarge) else 422)
    return redirect("replay_file", head.name, file.pk)


def _list(request: HttpRequest, head: Cluster, error: str = "", http_status: int = 200) -> HttpResponse:
    page = file_selectors.files(head).page(request.GET.get("before", ""))
    context = {
        "files": page.rows,
        "older": page.older,
        "error": error,
        "mib_max": FILE_BYTES_MAX // 2**20,
        "lines_max": LINES_MAX,
        "days": KEPT_DAYS,
    }
    return _page(request, head, "replay_files", context, http_status)


@require_safe
def replay_file(request: HttpRequest, cluster: str, file: int) -> HttpResponse:
    """Shows a file: what it has of which group, what is wrong with which line, which replays sent it."""
    with or_404():
        head = selectors.cluster_head(cluster)
        found = file_selectors.file(head, file)
    is_wrong = request.GET.get("wrong") == "1" or (found.wrong_count > 0 and "wrong" not in request.GET)
    rows, further = file_selectors.lines(found, is_wrong=is_wrong).page(request.GET.get("after", ""))
    context = {
        "file": found,
        "parts": file_selectors.parts(found),
        "lines": rows,
        "further": further,
        "is_wrong": is_wrong,
        "replays": of_file(found.pk),
    }
    return _page(request, head, "replay_file", context)


def _page(
    request: HttpRequest, head: Cluster, name: str, context: dict[str, Any], http_status: int = 200
) -> HttpResponse:
    frame = {"here": head.name, "cluster": head.name, "section": "replays", "now": timezone.now()}
    response = render(request, f"console/{name}.html", frame | context, status=http_status)
    add_never_cache_headers(response)
    return response
