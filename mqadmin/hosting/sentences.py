"""Why instances wait, in words, for pages and REST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from mqadmin.hosting.waiting import Reason, Why


def reason_words(reason: Reason) -> str:
    """Returns what the instances wait for, and what helps."""
    return _WORDS[reason.why](reason.count, reason.numbers)


def _stopped(count: int, _numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance was stopped by an operator: start it again on the group’s page.",
        "%(n)d instances were stopped by an operator: start them again on the group’s page.",
        count,
    )
    return words % {"n": count}


def _starting(count: int, _numbers: Mapping[str, Any]) -> str:
    return ngettext("%(n)s is starting.", "%(n)s are starting.", count) % {"n": f"{count:,}"}


def _silent(count: int, numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance has sent no heartbeat for %(seconds)d s: after %(limit)d s it is given up, and another starts.",
        "%(n)d instances have sent no heartbeat for up to %(seconds)d s: after %(limit)d s they are given up, and "
        "others start.",
        count,
    )
    return words % {"n": count, "seconds": numbers["seconds"], "limit": numbers["limit_s"]}


def _untaken(count: int, numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance was offered to a worker %(seconds)d s ago, which has not taken it: after %(limit)d s it is "
        "offered anew.",
        "%(n)d instances were offered to workers up to %(seconds)d s ago, which have not taken them: after %(limit)d s "
        "they are offered anew.",
        count,
    )
    return words % {"n": count, "seconds": numbers["seconds"], "limit": numbers["limit_s"]}


def _no_worker(count: int, _numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance waits for a worker: none of the queue loops is alive. Start one.",
        "%(n)d instances wait for a worker: none of the queue loops is alive. Start one.",
        count,
    )
    return words % {"n": count}


def _leaving(count: int, _numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance waits for a worker: all that are alive are being drained or stop. Start another one.",
        "%(n)d instances wait for a worker: all that are alive are being drained or stop. Start another one.",
        count,
    )
    return words % {"n": count}


def _undeclared(count: int, _numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance waits: the code of no worker that is alive has a listener of this group.",
        "%(n)d instances wait: the code of no worker that is alive has a listener of this group.",
        count,
    )
    return words % {"n": count}


def _failed(_count: int, numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(failures)d instance ended by an error within 5 minutes, as the worker’s log says: the next one starts in "
        "%(seconds)d s.",
        "%(failures)d instances ended by errors within 5 minutes, as the workers’ logs say: the next one starts in "
        "%(seconds)d s.",
        numbers["failures"],
    )
    return words % {"failures": numbers["failures"], "seconds": numbers["seconds"]}


def _slots_taken(count: int, numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance waits for a free worker process: of the workers’ %(slots)d slots all are taken (%(groups)s). "
        "Start another worker, or set a lower number of instances.",
        "%(n)d instances wait for a free worker process: of the workers’ %(slots)d slots all are taken (%(groups)s). "
        "Start another worker, or set a lower number of instances.",
        count,
    )
    by = [f"{one['group']} × {one['count']}" for one in numbers["groups"]]
    if numbers["others"]:
        by.append(_("others × %(count)d") % {"count": numbers["others"]})
    sentences = [words % {"n": count, "slots": numbers["slots"], "groups": pgettext("list", ", ").join(by)}]
    if ending := numbers["ending"]:
        more = ngettext("%(n)d of them stops now.", "%(n)d of them stop now.", ending)
        sentences.append(more % {"n": ending})
    if leaving := numbers["leaving_workers"]:
        more = ngettext(
            "%(n)d further worker is being drained or stops, and takes none.",
            "%(n)d further workers are being drained or stop, and take none.",
            leaving,
        )
        sentences.append(more % {"n": leaving})
    return reduce(lambda before, after: _("%(before)s %(after)s") % {"before": before, "after": after}, sentences)


def _unplaced(count: int, _numbers: Mapping[str, Any]) -> str:
    words = ngettext(
        "%(n)d instance is not placed yet, though the workers have room: supervision does so within seconds. If this "
        "stays, see whether beat and the worker of the queue jobs run.",
        "%(n)d instances are not placed yet, though the workers have room: supervision does so within seconds. If this "
        "stays, see whether beat and the worker of the queue jobs run.",
        count,
    )
    return words % {"n": count}


_WORDS: Mapping[Why, Callable[[int, Mapping[str, Any]], str]] = {
    Why.STOPPED: _stopped,
    Why.STARTING: _starting,
    Why.SILENT: _silent,
    Why.UNTAKEN: _untaken,
    Why.NO_WORKER: _no_worker,
    Why.LEAVING: _leaving,
    Why.UNDECLARED: _undeclared,
    Why.FAILED: _failed,
    Why.SLOTS_TAKEN: _slots_taken,
    Why.UNPLACED: _unplaced,
}
