"""What to know before a replay is started: a table of warnings, the most serious first. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from mqadmin.replays.dry_run import DryRun
from mqadmin.replays.states import Target

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


TAGS_TOLD_MAX = 10


@dataclass(frozen=True, slots=True)
class DryRunWarning:
    """`holds` returns what the text is filled with: a number of messages, or names; 0 or "" where it does not hold."""

    code: str
    holds: Callable[[DryRun], int | str]
    text: _StrPromise

    def said_of(self, found: DryRun) -> str:
        """Returns the sentence; "" where it does not hold."""
        value = self.holds(found)
        return str(self.text % dict.fromkeys(("n", "topics", "tags", "reasons"), value)) if value else ""


def _tag_words(found: DryRun) -> str:
    """Returns the tags that are not wanted, each with its topic, TAGS_TOLD_MAX at most."""
    unwanted = found.filtered.unwanted
    told = ", ".join(f"{one.tag or '–'} ({one.topic})" for one in unwanted[:TAGS_TOLD_MAX])
    return f"{told} …" if len(unwanted) > TAGS_TOLD_MAX else told


def _unmatched_words(found: DryRun) -> str:
    """Returns how many of which topic do not match."""
    words = _("%(topic)s (%(count)d of %(judged)d that were looked at)")
    told = (
        words % {"topic": one.topic, "count": one.count, "judged": one.judged_count} for one in found.filtered.unmatched
    )
    return ", ".join(told)


WARNINGS = (
    DryRunWarning(
        "uncounted",
        lambda found: found.chosen.count if found.chosen.has_more else 0,
        gettext_lazy(
            "More than %(n)d are selected; all of them are sent, and the figures here are those of the first."
        ),
    ),
    DryRunWarning(
        "estimated",
        lambda found: found.chosen.estimate or 0,
        gettext_lazy("By the counts of their failures these are about %(n)d, with what is archived."),
    ),
    DryRunWarning(
        "closed",
        lambda found: ", ".join(found.closed),
        gettext_lazy("No broker takes messages for %(topics)s: what goes there is refused."),
    ),
    DryRunWarning(
        "wrong_lines",
        lambda found: found.chosen.wrong_count,
        ngettext_lazy(
            "%(n)d line of the file is wrong: the ledger has it as refused, with the reason.",
            "%(n)d lines of the file are wrong: the ledger has them as refused, with the reasons.",
            "n",
        ),
    ),
    DryRunWarning(
        "changed_lines",
        lambda found: found.chosen.changed_count,
        ngettext_lazy(
            "%(n)d message of the file is not as this console knows it: it is sent under an id of its own.",
            "%(n)d messages of the file are not as this console knows them: they are sent under ids of their own.",
            "n",
        ),
    ),
    DryRunWarning(
        "other_groups_lines",
        lambda found: found.chosen.others_count,
        ngettext_lazy(
            "%(n)d line of the file is of another group: it is not sent.",
            "%(n)d lines of the file are of other groups: they are not sent.",
            "n",
        ),
    ),
    DryRunWarning(
        "homeless",
        lambda found: found.chosen.homeless_count if found.target != Target.TOPIC else 0,
        ngettext_lazy(
            "Of %(n)d message it is not known to which topic it was first sent: it is refused.",
            "Of %(n)d messages it is not known to which topic they were first sent: they are refused.",
            "n",
        ),
    ),
    DryRunWarning(
        "replayed",
        lambda found: found.chosen.replayed_count,
        ngettext_lazy("A replay has sent %(n)d of them already.", "Replays have sent %(n)d of them already.", "n"),
    ),
    DryRunWarning(
        "every_group",
        lambda found: found.target == Target.ORIGIN,
        gettext_lazy("Every group of the topic gets them, also those that consumed them before."),
    ),
    DryRunWarning(
        "nobody_online",
        lambda found: found.member_count == 0,
        gettext_lazy("No member of the group is online: they wait until one comes."),
    ),
    DryRunWarning(
        "maybe_ordered",
        lambda found: found.is_ordered is None and found.target == Target.GROUP,
        gettext_lazy(
            "Whether the group consumes in order is not known: not all members answered, or nobody is online and some"
            " left within the last 90 s. If it does, what is sent to its retry topic comes back to the dead letters at"
            " once."
        ),
    ),
    DryRunWarning(
        "unsubscribed",
        lambda found: ", ".join(found.unsubscribed),
        gettext_lazy(
            "The group does not subscribe to %(topics)s any more: its members may not know what to do with them."
        ),
    ),
    DryRunWarning(
        "gone",
        lambda found: ", ".join(found.gone),
        gettext_lazy(
            "Nobody can write to %(topics)s any more: the group gets what was first sent there under that name all the"
            " same."
        ),
    ),
    DryRunWarning(
        "unwanted",
        lambda found: _tag_words(found) if found.target == Target.ORIGIN else "",
        gettext_lazy("The group's subscription filters these out, and it does not get them: %(tags)s."),
    ),
    DryRunWarning(
        "unwanted_by_group",
        lambda found: _tag_words(found) if found.target == Target.GROUP else "",
        gettext_lazy(
            "The group's subscription does not want these tags any more, and it gets them all the same, since the retry"
            " topic is not filtered: %(tags)s."
        ),
    ),
    DryRunWarning(
        "unmatched",
        lambda found: _unmatched_words(found) if found.target == Target.ORIGIN else "",
        gettext_lazy("The group's subscription asks for other properties, and it does not get these: %(topics)s."),
    ),
    DryRunWarning(
        "unmatched_by_group",
        lambda found: _unmatched_words(found) if found.target == Target.GROUP else "",
        gettext_lazy(
            "The group's subscription asks for other properties than these have, and it gets them all the same, since"
            " the retry topic is not filtered: %(topics)s."
        ),
    ),
    DryRunWarning(
        "unclear",
        lambda found: ", ".join(found.filtered.unclear),
        gettext_lazy(
            "The group chooses from %(topics)s by an expression that cannot be read here: how many of these match is"
            " not known."
        ),
    ),
    DryRunWarning(
        "large",
        lambda found: found.chosen.large_count,
        ngettext_lazy(
            "The body of %(n)d is too large to be kept: it is read from the broker, and refused if it is gone there.",
            "The bodies of %(n)d are too large to be kept: they are read from the broker, and refused if they are gone"
            " there.",
            "n",
        ),
    ),
    DryRunWarning(
        "silent",
        lambda found: " ".join(found.silent),
        gettext_lazy("Not all could be asked: %(reasons)s"),
    ),
)


def warnings_of(found: DryRun) -> list[str]:
    """Returns what to know before, the most serious first; at the end who reads the topics besides."""
    return [*filter(None, (one.said_of(found) for one in WARNINGS)), *found.readers]
