"""Says who is concerned by a change of a topic: for previews, from what was observed."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mqadmin.clusters.models import Cluster
from mqadmin.flows.selectors import producer_groups, reader_names


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


def producers_words(cluster: Cluster) -> Iterator[str]:
    """Yields who may send to it: brokers do not tell to which topics a producer sends."""
    producers = producer_groups(cluster, timezone.now())
    if producers:
        yield _("Seen connected within a day, and perhaps sending to it: %(producers)s.") % {
            "producers": ", ".join(one.name for one in producers)
        }
