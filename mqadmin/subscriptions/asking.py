"""Asks members of groups what they want and what they have: whose turn it is, within a budget, and writes the answers.

On Apache's brokers a group has one table of subscriptions, which always looks consistent, so members are asked
themselves. Members of groups whose messages begin to wait come first, before these are judged, then those of groups
that somebody looks at or that are in trouble, each in a share of their own, so that they take nobody's turn; then
those that are new or whose group changed, then those whose answer is oldest. Behind all of them come those that were
silent when they were asked last: each keeps a broker's place for ten seconds. Who had no turn in a round stays as it
was, and so is among the first of the next. A member alone in its group is asked only when somebody looks at it, or it
is in trouble: there is nobody whom it could contradict; and when somebody has just left the group, whose queues it
takes over. Our own brokers tell what a member's heartbeats say, which is all but whether it consumes in order: that is
one thing for as long as it runs, so there each member of several is asked until it has answered once. Where each keeps
its own offsets, all are asked in turn: nobody else knows how far they are. C++ members are asked when their group has
had the same members for a while.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from mqadmin.clusters.bulk import CHUNK, chunks, update
from mqadmin.clusters.looking import looked_at_groups
from mqadmin.clusters.models import BROADCASTING, NEEDS_ATTENTION, Cluster, ClusterKind, ClusterState, Member
from mqadmin.observing import costs
from mqadmin.observing.gateway import Costs, GatewayError, MemberPlace, MembersAsked, MemberTold, ask
from mqadmin.observing.signals import MembersTold, members_told, publish
from mqadmin.subscriptions import judging
from mqadmin.subscriptions.models import REASON_CHARS_MAX, MemberAnswer, OwnSubscription
from mqadmin.subscriptions.progress import write_progress
from remoting.wire.codes import LanguageCode

logger = logging.getLogger(__name__)

# In one round, every 15 s: two members of each of 1,000 groups have their turn in 105 s, and answer within two minutes.
IN_TURN_PER_ROUND = 300
# And of those that somebody looks at, or whose groups are in trouble.
URGENT_PER_ROUND = 100
# And of those that were silent, or more where those in turn are few: they would be as quick, if they answer again.
SILENT_PER_ROUND = 100
# An answer that is younger is good enough, also of a group that somebody looks at.
YOUNG = timedelta(seconds=12)
# Whose next message has waited for so long is asked what it has in flight, before its group is called STALLED (60 s).
WAITS_LONG = timedelta(seconds=20)
# So many of these in one round: two rounds come before that minute is over, so 1,000 may begin to wait together.
WAITING_PER_ROUND = 500
# Who is alone since others left is asked for so long: members hear of that at once, or notice it within 20 s.
LEFT_LATELY = timedelta(seconds=60)
# librocketmq gets a queue back, and waits in its rebalance for its earlier pull of it, which the broker holds for up to
# 20 s. A question then takes one of its threads for requests, as many as the machine has cores; on two cores the pull's
# answer finds none, and the member consumes nothing ever after. A rebalance comes within 20 s of a change of members.
CPP_SETTLED_AFTER = timedelta(seconds=40)


def ask_round(cluster: Cluster, now: datetime) -> int:
    """Asks those whose turn it is; returns how many answered."""
    members = turn(cluster, now)
    if not members:
        return 0
    masters = _masters(cluster)
    places = {MemberPlace(member.group.name, member.client_id): member for member in members}
    spent = Costs()
    try:
        asked = ask(cluster.namesrv, lambda gateway: gateway.members.ask(places, masters), spent)
    except GatewayError as error:
        logger.warning("members on cluster %s were not asked: %s", cluster.name, error)
        asked = MembersAsked({}, {})
    costs.write(cluster, spent.take(), now)
    _write(cluster, places, asked, timezone.now())
    with transaction.atomic():
        judging.judge(cluster, {member.group_id for member in members}, timezone.now())
    return len(asked.told)


def _masters(cluster: Cluster) -> list[str]:
    """Returns the addresses of all, those that answered last first: of each member only some are tried."""
    masters = sorted(cluster.brokers.filter(broker_id=0), key=lambda broker: (bool(broker.last_error), broker.name))
    return [broker.address for broker in masters]


def turn(cluster: Cluster, now: datetime) -> list[Member]:
    """Returns whom to ask now, the most urgent first and those that were silent last."""
    if cluster.state not in (ClusterState.REACHABLE, ClusterState.PARTIAL):
        return []
    online = Member.objects.filter(group__cluster=cluster, group__is_system=False, left_at=None).select_related("group")
    online = online.exclude(language=LanguageCode.CPP.name, group__in=_changed_lately(cluster, now))
    old = Q(answer=None) | Q(answer__asked_at=None) | Q(answer__asked_at__lt=now - YOUNG)
    by_age = F("answer__asked_at").asc(nulls_first=True)
    in_trouble = Q(group__verdict__in=NEEDS_ATTENTION)
    waiting = Q(group__behind_since__lt=now - WAITS_LONG) & ~in_trouble
    was_silent = Q(answer__reason__gt="")
    to_ask = online.filter(old).order_by(by_age, "pk")
    answering = to_ask.filter(Q(answer=None) | Q(answer__reason=""))
    found = list(answering.filter(waiting)[:WAITING_PER_ROUND])
    urgent = (Q(group__name__in=looked_at_groups(cluster, now)) | in_trouble) & ~waiting
    found += answering.filter(urgent)[:URGENT_PER_ROUND]
    in_turn = Q(group__message_model=BROADCASTING)
    if cluster.kind == ClusterKind.OURS:
        in_turn |= Q(group__member_count__gt=1, answer__answered_at=None)
    else:
        left_lately = Member.objects.filter(group__cluster=cluster, left_at__gte=now - LEFT_LATELY)
        in_turn |= Q(group__member_count__gt=1) | Q(group__in=left_lately.values("group"))
    others = list(answering.filter(in_turn).exclude(pk__in=[member.pk for member in found])[:IN_TURN_PER_ROUND])
    silent = to_ask.filter(was_silent, waiting | urgent | in_turn)
    return found + others + list(silent[: max(SILENT_PER_ROUND, IN_TURN_PER_ROUND - len(others))])


def _changed_lately(cluster: Cluster, now: datetime) -> QuerySet[Member, int]:
    """Returns the ids of the groups in which a member came or left within CPP_SETTLED_AFTER."""
    since = now - CPP_SETTLED_AFTER
    came_or_left = Q(first_seen_at__gte=since) | Q(online_since__gte=since) | Q(left_at__gte=since)
    return Member.objects.filter(came_or_left, group__cluster=cluster).values_list("group", flat=True)


def make_due(group_ids: Iterable[int]) -> int:
    """Has the members of these groups asked next, because something has changed; returns how many rows it wrote."""
    return MemberAnswer.objects.filter(member__group__in=list(group_ids), asked_at__isnull=False).update(asked_at=None)


def _write(cluster: Cluster, places: Mapping[MemberPlace, Member], asked: MembersAsked, at: datetime) -> None:
    with transaction.atomic():
        # A group that was deleted while it was asked took its members with it.
        ids = set(Member.objects.filter(pk__in=[member.pk for member in places.values()]).values_list("pk", flat=True))
        told = {places[place].pk: told for place, told in asked.told.items() if places[place].pk in ids}
        silent = {places[place].pk: why for place, why in asked.reasons.items() if places[place].pk in ids}
        known = {row.pk: row for row in MemberAnswer.objects.filter(member__in=ids)}
        rows = [_answered(known.get(pk) or MemberAnswer(member_id=pk), one, at) for pk, one in told.items()]
        rows += [_silent(known.get(pk) or MemberAnswer(member_id=pk), why, at) for pk, why in silent.items()]
        MemberAnswer.objects.bulk_create([row for row in rows if row.pk not in known])
        update(MemberAnswer, [row for row in rows if row.pk in known], _COLUMNS)
        _write_subscriptions(told, at)
        publish(members_told, MembersTold(cluster, at, write_progress(told, at)))


_COLUMNS = [field.name for field in MemberAnswer._meta.concrete_fields if not field.primary_key]


def _silent(row: MemberAnswer, reason: str, at: datetime) -> MemberAnswer:
    row.asked_at, row.reason = at, reason[:REASON_CHARS_MAX]
    return row


def _answered(row: MemberAnswer, told: MemberTold, at: datetime) -> MemberAnswer:
    row.asked_at, row.answered_at, row.reason = at, at, ""
    row.message_model, row.consume_from_where = told.message_model, told.consume_from_where
    row.is_orderly, row.started_at = told.is_orderly, told.started_at
    return row


def _write_subscriptions(told: Mapping[int, MemberTold], at: datetime) -> None:
    """Begins and ends the rows that differ; where a member says what it said, nothing is written."""
    in_force: defaultdict[int, dict[tuple[str, str, str], OwnSubscription]] = defaultdict(dict)
    for row in OwnSubscription.objects.filter(member__in=told, ended_at=None):
        in_force[row.member_id][row.topic_name, row.expression, row.expression_type] = row
    begun, renewed = [], []
    for pk, one in told.items():
        for entry in one.subscriptions:
            known = in_force[pk].pop((entry.topic, entry.sub_string, entry.expression_type), None)
            if known is None:
                begun.append(
                    OwnSubscription(
                        member_id=pk,
                        topic_name=entry.topic,
                        expression=entry.sub_string,
                        expression_type=entry.expression_type,
                        sub_version=entry.sub_version,
                        first_seen_at=at,
                    )
                )
            elif known.sub_version != entry.sub_version:
                known.sub_version = entry.sub_version
                renewed.append(known)
    OwnSubscription.objects.bulk_create(begun, batch_size=CHUNK)
    update(OwnSubscription, renewed, ["sub_version"])
    for ids in chunks(row.pk for rows in in_force.values() for row in rows.values()):
        OwnSubscription.objects.filter(pk__in=ids).update(ended_at=at)
