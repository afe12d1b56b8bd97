"""Readings and rules in words, in the language of whoever reads: pages, REST and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mqadmin.alerts.conditions import WATCHED, About, Subject
from mqadmin.clusters.cluster_reasons import cluster_reason
from mqadmin.clusters.cluster_verdict import ClusterJudgement, ClusterVerdict, Finding
from mqadmin.lag import verdicts

VERDICT_WORDS: Mapping[str, Promise] = {
    "unreachable": gettext_lazy("UNREACHABLE"),
    "stalled": gettext_lazy("STALLED"),
    "partial": gettext_lazy("PARTIAL"),
    "not_running": gettext_lazy("NOT RUNNING"),
    "stopped": gettext_lazy("STOPPED"),
    "failing": gettext_lazy("FAILING"),
    "slow": gettext_lazy("SLOW"),
    "rewound": gettext_lazy("REWOUND"),
    "busy": gettext_lazy("BUSY"),
    "unknown": gettext_lazy("UNKNOWN"),
    "ok": gettext_lazy("OK"),
    "quiet": gettext_lazy("QUIET"),
}


def subject_words(about: str, cluster: str, name: str) -> str:
    """Returns the name of the thing that an alert is about."""
    return cluster if WATCHED[About(about)].subject == Subject.CLUSTER else name


def what_words(about: str, reading: Mapping[str, Any]) -> str:
    """Returns what was read, as one sentence."""
    return _WORDS[About(about)](reading) if reading else ""


def verdict_word(verdict: str) -> str:
    """Returns a verdict of a group or cluster as pages write it."""
    return str(VERDICT_WORDS.get(verdict, verdict))


def rule_words(about: str, verdicts: Sequence[str], threshold: int, minutes: int) -> str:
    """Returns what a rule watches for, as one phrase."""
    values = {"n": f"{threshold:,}", "minutes": minutes, "verdicts": ", ".join(verdict_word(one) for one in verdicts)}
    return _RULES[About(about)]() % values


def _verdict(reading: Mapping[str, Any]) -> str:
    reason = verdicts.reason(str(reading.get("rule", "")), dict(reading.get("numbers") or {}))
    return f"{verdict_word(str(reading.get('verdict', '')))}. {reason}".strip()


def _lag(reading: Mapping[str, Any]) -> str:
    lag = int(reading.get("value") or 0)
    words = ngettext(
        "%(lag)s message waits; the rule allows %(most)s.", "%(lag)s messages wait; the rule allows %(most)s.", lag
    )
    return words % {"lag": f"{lag:,}", "most": _count(reading.get("threshold"))}


def _behind(reading: Mapping[str, Any]) -> str:
    words = _("The next message has been waiting for %(waited)s s; the rule allows %(most)s s.")
    return words % {"waited": _count(reading.get("value")), "most": _count(reading.get("threshold"))}


def _objective(reading: Mapping[str, Any]) -> str:
    words = _("The next message has been waiting for %(waited)s s, and %(lag)s wait; its objective is %(most)s s.")
    values = {"waited": _count(reading.get("value")), "lag": _count(reading.get("lag"))}
    return words % {**values, "most": _count(reading.get("threshold"))}


def _drain(reading: Mapping[str, Any]) -> str:
    if reading.get("value") is None:
        return _("At these rates the lag is never gone.")
    words = _("At these rates the lag is gone in %(minutes)s minutes.")
    return words % {"minutes": _count(reading["value"])}


def _dead_letters(reading: Mapping[str, Any]) -> str:
    count = int(reading.get("value") or 0)
    words = ngettext(
        "%(count)s dead letter in %(minutes)s minutes.", "%(count)s dead letters in %(minutes)s minutes.", count
    )
    return words % {"count": f"{count:,}", "minutes": _count(reading.get("minutes"))}


def _raised(reading: Mapping[str, Any]) -> str:
    count = int(reading.get("value") or 0)
    words = ngettext(
        "A rule for dead letters shows %(count)s failure; dead of it: %(dead)s.",
        "Rules for dead letters show %(count)s failures; dead of them: %(dead)s.",
        count,
    )
    return words % {"count": f"{count:,}", "dead": _count(reading.get("dead"))}


def _conflict(_reading: Mapping[str, Any]) -> str:
    return _("Its members do not want the same, so messages are missed.")


def _scheduler(reading: Mapping[str, Any]) -> str:
    if reading.get("value") is None:
        return _("No worker runs it: delayed messages and retries wait.")
    return _("Its scheduler is %(late)s s late.") % {"late": _count(reading["value"])}


def _broker(reading: Mapping[str, Any]) -> str:
    error = reading.get("error")
    return _("It does not answer: %(error)s") % {"error": error} if error else _("It does not answer.")


def _disk(reading: Mapping[str, Any]) -> str:
    return _("%(percent)s %% of its disk are used.") % {"percent": _count(reading.get("value"))}


def _cluster(reading: Mapping[str, Any]) -> str:
    error = reading.get("error")
    return _("It cannot be reached: %(error)s") % {"error": error} if error else _("It cannot be reached.")


def _cluster_verdict(reading: Mapping[str, Any]) -> str:
    findings = tuple(Finding(ClusterVerdict(one["verdict"]), int(one["count"])) for one in reading["findings"])
    judged = ClusterJudgement(ClusterVerdict(reading["verdict"]), findings)
    words = _("%(verdict)s: %(reason)s.")
    return words % {"verdict": verdict_word(judged.verdict), "reason": cluster_reason(judged)}


def _count(value: Any) -> str:
    return "–" if value is None else f"{round(value):,}"


_WORDS: Mapping[About, Callable[[Mapping[str, Any]], str]] = {
    About.VERDICT: _verdict,
    About.LAG: _lag,
    About.BEHIND: _behind,
    About.OBJECTIVE: _objective,
    About.DRAIN: _drain,
    About.DEAD_LETTERS: _dead_letters,
    About.RAISED: _raised,
    About.CONFLICT: _conflict,
    About.SCHEDULER: _scheduler,
    About.BROKER: _broker,
    About.DISK: _disk,
    About.CLUSTER: _cluster,
    About.CLUSTER_VERDICT: _cluster_verdict,
}

_RULES: Mapping[About, Callable[[], str]] = {
    About.VERDICT: lambda: _("group is %(verdicts)s"),
    About.LAG: lambda: _("%(n)s messages of a group wait, or more"),
    About.BEHIND: lambda: _("a group’s next message waits for %(n)s s, or longer"),
    About.OBJECTIVE: lambda: _("group misses its objective"),
    About.DRAIN: lambda: _("a late group’s lag is gone in %(n)s minutes at the earliest, or never"),
    About.DEAD_LETTERS: lambda: _("%(n)s dead letters of a group in %(minutes)s minutes, or more"),
    About.RAISED: lambda: _("a rule for dead letters shows a failure of a group"),
    About.CONFLICT: lambda: _("members of a group do not want the same"),
    About.SCHEDULER: lambda: _("a broker’s scheduler is %(n)s s late, or nobody runs it"),
    About.BROKER: lambda: _("broker does not answer"),
    About.DISK: lambda: _("%(n)s %% of a broker’s disk are used, or more"),
    About.CLUSTER: lambda: _("cluster cannot be reached"),
    About.CLUSTER_VERDICT: lambda: _("something in a cluster is %(verdicts)s"),
}
