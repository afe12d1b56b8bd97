"""Says who is concerned by a change of a topic: for previews, from what was observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mqadmin.clusters.models import Cluster
from mqadmin.flows.selectors import NAMES_TOLD_MAX, producer_groups, reader_names


def readers_words(cluster: Cluster, topic: str) -> str:
    """Returns which groups read a topic."""
    names, more = reader_names(cluster, topic)
    if not names:
        return _("No group is known to read %(topic)s.") % {"topic": topic}
    values = {"topic": topic, "groups": ", ".join(names), "n": more}
    if more:
        return (
            ngettext(
                "%(groups)s and %(n)d more group read %(topic)s.",
                "%(groups)s and %(n)d more groups read %(topic)s.",
                more,
            )
            % values
        )
    return ngettext("%(groups)s reads %(topic)s.", "%(groups)s read %(topic)s.", len(names)) % values


def producers_words(
    cluster: Cluster, connected: Mapping[str, int], untold: Mapping[str, str], named_only: Sequence[str] = ()
) -> Iterator[str]:
    """Yields who may send to a topic: brokers do not tell to which topics a producer sends.

    `connected`: producer groups, and how many of their clients its brokers have now; `untold`: brokers that did not say
    so, and why; `named_only`: brokers that have no list of producers, and were asked for the groups that were seen.
    """
    if connected:
        yield _("Connected to its brokers now, and perhaps sending to it: %(producers)s.") % {
            "producers": _names([f"{name} ({count:,})" for name, count in sorted(connected.items())])
        }
    elif not untold and not named_only:
        yield _("No producer is connected to its brokers now.")
    for broker, why in sorted(untold.items()):
        yield _("Which producers are connected to %(broker)s is not known: %(why)s") % {"broker": broker, "why": why}
    for broker in named_only:
        yield _(
            "%(broker)s cannot list its producers, as it runs an older Apache RocketMQ: it was asked only for groups"
            " that are known by name, so others may be sending to it."
        ) % {"broker": broker}
    before = [one.name for one in producer_groups(cluster, timezone.now()) if one.name not in connected]
    if before:
        yield _("Seen connected within a day, and perhaps sending to it: %(producers)s.") % {
            "producers": _names(before)
        }


def _names(names: Sequence[str]) -> str:
    told, more = ", ".join(names[:NAMES_TOLD_MAX]), len(names) - NAMES_TOLD_MAX
    if more <= 0:
        return told
    return ngettext("%(names)s and %(n)d more", "%(names)s and %(n)d more", more) % {"names": told, "n": more}
