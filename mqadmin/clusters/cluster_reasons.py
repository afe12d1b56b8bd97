"""Why a cluster has its verdict, in words: "3 groups STALLED, 1 broker away"."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.utils.translation import gettext, ngettext

from mqadmin.clusters.cluster_verdict import ClusterJudgement, ClusterVerdict


def cluster_reason(judged: ClusterJudgement) -> str:
    """Returns what is not all right, the worst first; of a cluster without it, that nothing is."""
    if not judged.findings:
        return _CALM[judged.verdict]()
    return gettext(", ").join(_FOUND[one.verdict](one.count) % {"n": f"{one.count:,}"} for one in judged.findings)


_FOUND: Mapping[ClusterVerdict, Callable[[int], str]] = {
    ClusterVerdict.UNREACHABLE: lambda _count: gettext("the cluster does not answer"),
    ClusterVerdict.STALLED: lambda count: ngettext("%(n)s group STALLED", "%(n)s groups STALLED", count),
    ClusterVerdict.PARTIAL: lambda count: ngettext("%(n)s broker away", "%(n)s brokers away", count),
    ClusterVerdict.NOT_RUNNING: lambda count: ngettext(
        "%(n)s scheduler that no worker runs", "%(n)s schedulers that no worker runs", count
    ),
    ClusterVerdict.STOPPED: lambda count: ngettext("%(n)s group STOPPED", "%(n)s groups STOPPED", count),
    ClusterVerdict.FAILING: lambda count: ngettext("%(n)s group FAILING", "%(n)s groups FAILING", count),
    ClusterVerdict.SLOW: lambda count: ngettext("%(n)s group SLOW", "%(n)s groups SLOW", count),
}
_CALM: Mapping[ClusterVerdict, Callable[[], str]] = {
    ClusterVerdict.OK: lambda: gettext("all groups and brokers are all right"),
    ClusterVerdict.QUIET: lambda: gettext("no messages arrived lately"),
    ClusterVerdict.UNKNOWN: lambda: gettext("not known yet"),
}
