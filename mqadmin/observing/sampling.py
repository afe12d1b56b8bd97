"""One cycle of polling: claimed, sampled, written."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState
from mqadmin.lag import measuring
from mqadmin.observing import synchroniser
from mqadmin.observing.gateway import Gateway, GatewayError
from mqadmin.observing.polling import Cursors, sample
from mqadmin.observing.reachability import note_reachable, note_unreachable

POLL_INTERVAL_S = 15
# Just below a whole number of beats, so that a beat that is a little early does not skip one.
_CLAIM_AFTER = timedelta(seconds=POLL_INTERVAL_S - 1)


def claim(cluster: Cluster, now: datetime) -> bool:
    """Whether a cycle is due and nobody else has claimed it."""
    is_due = Q(last_tried_at=None) | Q(last_tried_at__lte=now - _CLAIM_AFTER)
    return Cluster.objects.filter(is_due, pk=cluster.pk).update(last_tried_at=now) > 0


def sample_once(cluster: Cluster, now: datetime) -> None:
    """The rows after one cycle; or the reason why there is none."""
    try:
        with Gateway(cluster.namesrv) as gateway:
            found = sample(gateway, Cursors(cluster.topic_cursor, cluster.group_cursor), now)
    except GatewayError as error:
        note_unreachable(cluster, str(error), now)
        return
    measuring.note_gap(cluster, now)
    was_unreachable = cluster.state == ClusterState.UNREACHABLE
    cluster.rocketmq_name = found.rocketmq_name or cluster.rocketmq_name
    cluster.topic_cursor, cluster.group_cursor = found.cursors.topic, found.cursors.group
    cluster.cycle_request_count = found.request_count
    cluster.save(update_fields=["rocketmq_name", "topic_cursor", "group_cursor", "cycle_request_count"])
    synchroniser.apply_brokers(cluster, found.brokers, now)
    synchroniser.apply(cluster, found.seen, is_watched=False)
    synchroniser.tick(cluster, now, is_watched=False)
    # What was away may come back as something else: then whether it can be followed is asked again.
    kind = ClusterKind.UNKNOWN if was_unreachable else ClusterKind.APACHE
    note_reachable(cluster, kind, now, partly=str(found.error) if found.error else "")
