"""What actions on dead letters are about: a failure or a dead letter, named by its number."""

from __future__ import annotations

from django.utils.translation import gettext as _

from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter, Failure


def require_failure(cluster: Cluster, failure_id: int) -> Failure:
    """Raises ActionRefused where the cluster has none of that number."""
    found = Failure.objects.filter(cluster=cluster, pk=failure_id).first()
    if found is None:
        words = _(
            "Cluster %(cluster)s has no failure %(number)d; its dead letters may have been removed for their age."
        )
        raise ActionRefused(words % {"cluster": cluster.name, "number": failure_id})
    return found


def require_dead_letter(cluster: Cluster, dead_letter_id: int) -> DeadLetter:
    """Raises ActionRefused where the cluster has none of that number."""
    found = DeadLetter.objects.filter(cluster=cluster, pk=dead_letter_id).first()
    if found is None:
        words = _("Cluster %(cluster)s has no dead letter %(number)d; it may have been removed for its age.")
        raise ActionRefused(words % {"cluster": cluster.name, "number": dead_letter_id})
    return found


def failure_words(failure: Failure) -> str:
    """Returns a failure in one line, as the audit keeps it."""
    if not failure.failure_class:
        return failure.shape
    return f"{failure.failure_class}: {failure.failure_text}" if failure.failure_text else failure.failure_class
