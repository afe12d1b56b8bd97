"""Rows to what is known of each member of a group: its own answer, else what our broker saw in its heartbeats."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqadmin.clusters.models import Member, Subscription
from mqadmin.subscriptions.consistency import MemberView, Source, Wanted
from mqadmin.subscriptions.models import MemberAnswer, OwnSubscription

# The client id of the subscription that the broker keeps for the whole group.
WHOLE_GROUP = ""


@dataclass(frozen=True, slots=True)
class GroupView:
    """`table`: what the broker keeps for the whole group, by topic."""

    members: Sequence[MemberView]
    table: Mapping[str, Wanted]


def group_views(group_ids: Iterable[int]) -> dict[int, GroupView]:
    """Returns by group what is known of its members that are online. Four queries, whatever the number of groups."""
    ids = list(group_ids)
    members = list(Member.objects.filter(group__in=ids, left_at=None).order_by("client_id"))
    answers = {row.member_id: row for row in MemberAnswer.objects.filter(member__in=members)}
    own: defaultdict[int, dict[str, Wanted]] = defaultdict(dict)
    for said in OwnSubscription.objects.filter(member__in=members, ended_at=None):
        own[said.member_id][said.topic_name] = _wanted(said)
    seen: defaultdict[tuple[int, str], dict[str, Wanted]] = defaultdict(dict)
    for row in Subscription.objects.filter(group__in=ids, ended_at=None):
        seen[row.group_id, row.client_id][row.topic_name] = _wanted(row)
    of_group: defaultdict[int, list[MemberView]] = defaultdict(list)
    for member in members:
        heartbeat = seen.get((member.group_id, member.client_id))
        of_group[member.group_id].append(_view(member, answers.get(member.pk), own.get(member.pk), heartbeat))
    return {pk: GroupView(of_group.get(pk, []), seen.get((pk, WHOLE_GROUP), {})) for pk in ids}


def _view(
    member: Member,
    answer: MemberAnswer | None,
    own: Mapping[str, Wanted] | None,
    heartbeat: Mapping[str, Wanted] | None,
) -> MemberView:
    has_answered = answer is not None and answer.answered_at is not None
    # A heartbeat comes by itself, within a second of a change; an answer is as old as the last question.
    told: dict[str, Any] = {
        "message_model": member.message_model,
        "consume_from_where": member.consume_from_where,
    }
    if answer is not None and has_answered:
        told = {
            "message_model": member.message_model or answer.message_model,
            "is_orderly": answer.is_orderly,
            "consume_from_where": member.consume_from_where or answer.consume_from_where,
        }
    if heartbeat is not None:
        topics, source, seen_at = heartbeat, Source.HEARTBEAT, member.seen_at
    elif answer is not None and has_answered:
        topics, source, seen_at = own or {}, Source.OWN_ANSWER, answer.answered_at or member.seen_at
    else:
        topics, source, seen_at = None, Source.NOT_KNOWN, None
    return MemberView(
        client_id=member.client_id,
        joined_at=member.online_since or member.first_seen_at,
        topics=topics,
        source=source,
        seen_at=seen_at,
        **told,
    )


def _wanted(row: Subscription | OwnSubscription) -> Wanted:
    return Wanted(row.expression, row.expression_type, row.sub_version, row.first_seen_at)
