"""Whose turn it is to be asked, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from mqadmin.clusters.held_queues import HeldQueue, read
from mqadmin.clusters.looking import LOOKED_AT_FOR, note_looked_at
from mqadmin.clusters.models import Cluster, ClusterKind, ClusterState, Group, Member, MemberProgress, Verdict
from mqadmin.observing.gateway import GatewayError, MemberPlace, MembersAsked, MemberTold
from mqadmin.rebalances.models import RebalanceEvent
from mqadmin.subscriptions import asking
from mqadmin.subscriptions.models import GroupConflict, MemberAnswer, OwnSubscription
from remoting.wire.bodies.heartbeat import SubscriptionData
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.running_info import ProcessQueueInfo
from tests.support import console_rows as seed

ROUND = timedelta(seconds=15)
# As a member's answer: its group was deleted while it was asked.
GONE = "gone"
# As a member's answer: it had no turn in the round.
NOT_ASKED = "not asked"


def told(expression: str = "*", version: int = 1, topic: str = "orders", **said: Any) -> MemberTold:
    values: dict[str, Any] = {
        "subscriptions": (SubscriptionData(topic=topic, sub_string=expression, sub_version=version),),
        "queues": (MessageQueue("orders", "broker-a", 0),),
        "message_model": "CLUSTERING",
        "consume_from_where": "CONSUME_FROM_LAST_OFFSET",
        "is_orderly": False,
        "started_at": None,
    }
    return MemberTold(**(values | said))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, MemberTold | str]:
    """By client id what a member answers, or why it does not."""
    given: dict[str, MemberTold | str] = {}

    def ask(namesrv: str, call: Callable[[Any], Any], costs: object) -> MembersAsked:
        places: list[MemberPlace] = []

        class Members:
            def ask(self, wanted: Any, masters: Any) -> None:
                places.extend(wanted)

        class Gateway:
            members = Members()

        call(Gateway())
        said = {place: given.get(place.client_id, "silent") for place in places}
        Member.objects.filter(client_id__in=[place.client_id for place, one in said.items() if one == GONE]).delete()
        return MembersAsked(
            {place: one for place, one in said.items() if isinstance(one, MemberTold)},
            {place: one for place, one in said.items() if isinstance(one, str) and one != NOT_ASKED},
        )

    monkeypatch.setattr(asking, "ask", ask)
    return given


def many_groups(
    cluster: Cluster, now: datetime, verdicts: list[Verdict], *, member_count: int, **values: Any
) -> tuple[list[Group], list[Member]]:
    groups = Group.objects.bulk_create(
        Group(
            cluster=cluster,
            name=f"group-{number:04}",
            member_count=member_count,
            verdict=verdict,
            seen_at=now,
            **values,
        )
        for number, verdict in enumerate(verdicts)
    )
    members = Member.objects.bulk_create(
        Member(group=group, client_id=f"{number}@1", first_seen_at=now, seen_at=now)
        for group in groups
        for number in range(member_count)
    )
    return groups, members


def were_asked(members: list[Member], at: datetime) -> None:
    rows = [MemberAnswer(member=member, asked_at=at) for member in members]
    MemberAnswer.objects.bulk_create(rows, update_conflicts=True, unique_fields=["member"], update_fields=["asked_at"])


def names(members: list[Member]) -> list[str]:
    return [member.client_id for member in members]


def test_every_member_of_a_group_of_several_has_its_turn_the_oldest_answer_first(
    apache: Cluster, members: list[Member], now: datetime
) -> None:
    first, second, third = members
    MemberAnswer.objects.create(member=first, asked_at=now - timedelta(minutes=1))
    MemberAnswer.objects.create(member=second, asked_at=now - timedelta(minutes=2))
    assert names(asking.turn(apache, now)) == names([third, second, first])


def test_a_young_answer_is_good_enough(apache: Cluster, members: list[Member], now: datetime) -> None:
    MemberAnswer.objects.create(member=members[0], asked_at=now - asking.YOUNG / 2)
    assert names(asking.turn(apache, now)) == names(members[1:])


def test_a_member_alone_is_asked_only_when_its_group_is_in_trouble(apache: Cluster, now: datetime) -> None:
    alone = seed.make_group(apache, "alone", now=now, member_count=1)
    stalled = seed.make_group(apache, "stalled", now=now, member_count=1, verdict=Verdict.STALLED)
    seed.make_member(alone, "a@1", now=now)
    seed.make_member(stalled, "b@1", now=now)
    assert names(asking.turn(apache, now)) == ["b@1"]


def test_a_member_alone_is_asked_for_a_minute_after_another_one_left(apache: Cluster, now: datetime) -> None:
    group = seed.make_group(apache, "was-two", now=now, member_count=1)
    seed.make_member(group, "a@1", now=now)
    gone = seed.make_member(group, "b@1", now=now)
    Member.objects.filter(pk=gone.pk).update(left_at=now)
    assert names(asking.turn(apache, now + timedelta(seconds=59))) == ["a@1"]
    assert asking.turn(apache, now + timedelta(seconds=61)) == []


@pytest.mark.parametrize("change", ["first_seen_at", "online_since", "left_at"])
def test_a_cpp_member_is_asked_once_its_group_has_had_the_same_members_for_40_s(
    apache: Cluster, change: str, now: datetime
) -> None:
    group = seed.make_group(apache, "native", now=now, member_count=2, verdict=Verdict.STALLED)
    seed.make_member(group, "1-10.0.0.1@1", now=now, language="CPP")
    seed.make_member(group, "2-10.0.0.1@1", now=now)
    seed.make_member(group, "3-10.0.0.1@1", now=now, **{"left_at": now - timedelta(minutes=2), change: now})
    calm = seed.make_group(apache, "calm", now=now, member_count=2)
    seed.make_member(calm, "4-10.0.0.1@1", now=now, language="CPP")
    early, late = now + timedelta(seconds=39), now + timedelta(seconds=41)
    assert set(names(asking.turn(apache, early))) == {"2-10.0.0.1@1", "4-10.0.0.1@1"}
    assert set(names(asking.turn(apache, late))) == {"1-10.0.0.1@1", "2-10.0.0.1@1", "4-10.0.0.1@1"}


def test_a_group_that_somebody_looks_at_comes_first(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    seen = seed.make_group(apache, "seen", now=now, member_count=1, looked_at=now)
    MemberAnswer.objects.create(member=seed.make_member(seen, "z@1", now=now), asked_at=now - timedelta(seconds=30))
    assert names(asking.turn(apache, now))[0] == "z@1"


def have_answered(members: list[Member], at: datetime) -> None:
    MemberAnswer.objects.bulk_create([MemberAnswer(member=one, asked_at=at, answered_at=at) for one in members])


def test_of_our_own_brokers_members_of_several_are_asked_once(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    Cluster.objects.update(kind=ClusterKind.OURS)
    apache.refresh_from_db()
    alone = seed.make_group(apache, "alone", now=now, member_count=1)
    seed.make_member(alone, "z@1", now=now)
    assert names(asking.turn(apache, now)) == names(members), "heartbeats do not tell whether they consume in order"
    have_answered(members[1:], now)
    assert names(asking.turn(apache, now + asking.YOUNG * 2)) == names(members[:1])


def test_of_our_own_brokers_only_who_is_in_trouble_or_looked_at_is_asked_again(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    Cluster.objects.update(kind=ClusterKind.OURS)
    apache.refresh_from_db()
    have_answered(members, now - timedelta(minutes=1))
    assert asking.turn(apache, now) == []
    note_looked_at(billing, now)
    assert names(asking.turn(apache, now)) == names(members)
    assert asking.turn(apache, now + LOOKED_AT_FOR) == []
    Group.objects.filter(pk=billing.pk).update(verdict=Verdict.STALLED)
    assert names(asking.turn(apache, now + LOOKED_AT_FOR)) == names(members)


def test_nobody_is_asked_on_a_cluster_that_does_not_answer(
    apache: Cluster, members: list[Member], now: datetime
) -> None:
    apache.state = ClusterState.UNREACHABLE
    assert asking.turn(apache, now) == []


def test_who_left_is_not_asked(apache: Cluster, members: list[Member], now: datetime) -> None:
    Member.objects.filter(pk=members[0].pk).update(left_at=now)
    assert names(asking.turn(apache, now)) == names(members[1:])


def test_what_a_member_told_is_kept_and_a_silent_one_says_why(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    answers[members[0].client_id] = told("A", is_orderly=True)
    answers[members[1].client_id] = "client 10.0.0.2@1 is not online"
    assert asking.ask_round(apache, now) == 1
    said = MemberAnswer.objects.get(member=members[0])
    assert said.is_orderly is True
    assert [row[:3] for row in MemberProgress.objects.get(member=members[0]).queues] == [["orders", "broker-a", 0]]
    assert OwnSubscription.objects.get(member=members[0]).expression == "A"
    silent = MemberAnswer.objects.get(member=members[1])
    assert (silent.answered_at, silent.reason) == (None, "client 10.0.0.2@1 is not online")


def test_who_had_no_turn_stays_as_it_was_and_is_the_first_of_the_next_round(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    first, second, third = members
    before = now - timedelta(minutes=1)
    MemberAnswer.objects.create(member=second, asked_at=before, answered_at=before)
    answers.update({first.client_id: told(), second.client_id: NOT_ASKED, third.client_id: NOT_ASKED})
    asking.ask_round(apache, now)
    kept = MemberAnswer.objects.get(member=second)
    assert (kept.asked_at, kept.answered_at, kept.reason) == (before, before, "")
    assert not MemberAnswer.objects.filter(member=third).exists()
    assert names(asking.turn(apache, now + ROUND))[:2] == names([third, second])


def test_where_nobody_could_be_asked_nobody_is_called_silent(
    apache: Cluster, members: list[Member], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> MembersAsked:
        raise GatewayError("the name server does not answer")

    monkeypatch.setattr(asking, "ask", fail)
    assert asking.ask_round(apache, now) == 0
    assert not MemberAnswer.objects.exists()


def test_brokers_that_do_not_answer_are_tried_last(
    apache: Cluster, members: list[Member], now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    apache.brokers.all().delete()
    for name, error in (("a", "no connection"), ("c", ""), ("b", "")):
        apache.brokers.create(name=name, address=f"{name}:1", last_error=error, seen_at=now)
    tried: list[str] = []

    class Members:
        def ask(self, _: Any, masters: list[str]) -> MembersAsked:
            tried.extend(masters)
            return MembersAsked({}, {})

    class Gateway:
        members = Members()

    monkeypatch.setattr(asking, "ask", lambda namesrv, call, costs: call(Gateway()))
    asking.ask_round(apache, now)
    assert tried == ["b:1", "c:1", "a:1"]


def test_who_was_silent_the_last_time_comes_behind_those_that_answered(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    first, second, third = members
    for member, minutes, reason in ((first, 9, "silent"), (second, 1, ""), (third, 10, "silent")):
        MemberAnswer.objects.create(member=member, asked_at=now - timedelta(minutes=minutes), reason=reason)
    assert names(asking.turn(apache, now)) == names([second, third, first])
    note_looked_at(billing, now)
    assert names(asking.turn(apache, now)) == names([second, third, first])


def test_many_silent_members_take_nobody_elses_turn_and_have_one(apache: Cluster, now: datetime) -> None:
    _, members = many_groups(apache, now, [Verdict.OK] * 350, member_count=2)
    MemberAnswer.objects.bulk_create(
        MemberAnswer(member=member, asked_at=now - timedelta(minutes=9), reason="silent") for member in members[:350]
    )
    found = asking.turn(apache, now)
    assert len(found) == asking.IN_TURN_PER_ROUND + asking.SILENT_PER_ROUND
    assert {member.pk for member in found[: asking.IN_TURN_PER_ROUND]} <= {member.pk for member in members[350:]}
    were_asked(members[350:], now)
    assert len(asking.turn(apache, now + ROUND / 2)) == asking.IN_TURN_PER_ROUND, "where nobody else has a turn"


def test_a_queue_that_stands_keeps_since_when_its_member_is_there(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    held = []
    for offset in (7, 7, 8):
        info = ProcessQueueInfo(commit_offset=offset, cached_msg_count=2)
        answers[members[0].client_id] = told(progress={queue: info}, consume_timeout_s=900)
        asking.ask_round(apache, now)
        MemberAnswer.objects.update(asked_at=None)
        row = MemberProgress.objects.get(member=members[0])
        held.append(read(row.queues)[queue])
    assert row.consume_timeout_s == 900
    assert [(one.next_offset, one.in_flight_count) for one in held] == [(7, 2), (7, 2), (8, 2)]
    assert held[0].since_s == held[1].since_s < held[2].since_s


def test_offsets_that_no_queue_has_are_not_known(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    for offset in (-1, 2**70):
        info = ProcessQueueInfo(commit_offset=offset, cached_msg_count=-5)
        answers[members[0].client_id] = told(progress={queue: info})
        asking.ask_round(apache, now)
        MemberAnswer.objects.update(asked_at=None)
        (held,) = read(MemberProgress.objects.get(member=members[0]).queues).values()
        assert (held.next_offset, held.in_flight_count) == (None, 0)


def test_queues_that_moved_by_the_word_of_members_are_one_event_with_its_doubt(
    apache: Cluster, billing: Group, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    one, other = members[0].client_id, members[1].client_id
    answers[one], answers[other] = told(), told(queues=())
    asking.ask_round(apache, now)
    assert not RebalanceEvent.objects.exists()
    before = MemberProgress.objects.get(member=members[0]).told_at
    MemberAnswer.objects.update(asked_at=None)
    answers[one], answers[other] = told(queues=()), told()
    asking.ask_round(apache, now)
    event = RebalanceEvent.objects.get(group=billing)
    assert event.kind == "queues_moved"
    assert event.details == {
        "moves": [{"topic": "orders", "broker": "broker-a", "queue_id": 0, "from": one, "to": other}],
        "since": before.isoformat(),
    }


@pytest.mark.parametrize(
    ("left_before", "from_clients"), [(timedelta(minutes=5), ["gone@1"]), (timedelta(hours=1), [])]
)
def test_a_queue_moves_from_who_left_lately_and_not_from_who_left_long_ago(
    apache: Cluster,
    billing: Group,
    members: list[Member],
    now: datetime,
    answers: dict[str, MemberTold | str],
    left_before: timedelta,
    from_clients: list[str],
) -> None:
    gone = seed.make_member(billing, "gone@1", now=now, left_at=now - left_before)
    held = HeldQueue(MessageQueue("orders", "broker-a", 0), 5, 0).as_row()
    MemberProgress.objects.create(member=gone, told_at=now - left_before, queues=[held])
    answers[members[0].client_id] = told()
    asking.ask_round(apache, now)
    moves = [move for event in RebalanceEvent.objects.filter(group=billing) for move in event.details["moves"]]
    assert [move["from"] for move in moves] == from_clients


@pytest.mark.parametrize("leaves", [False, True])
def test_a_queue_that_a_new_member_takes_before_the_old_one_lets_it_go_moves_when_that_does(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str], leaves: bool
) -> None:
    old, new, _ = names(members)
    queue = (MessageQueue("orders", "broker-a", 0),)
    rounds = [{old: queue}, {old: queue, new: queue}, {new: queue} if leaves else {old: (), new: queue}, {new: queue}]
    moves = []
    for number, held in enumerate(rounds):
        if leaves and number == 2:
            Member.objects.filter(client_id=old).update(left_at=now)
        answers.clear()
        answers.update({client_id: told(queues=queues) for client_id, queues in held.items()})
        asking.ask_round(apache, now + timedelta(minutes=number))
        MemberAnswer.objects.update(asked_at=None)
        events = RebalanceEvent.objects.order_by("at")
        moves.append([(move["from"], move["to"]) for event in events for move in event.details["moves"]])
    assert moves == [[], [], [(old, new)], [(old, new)]]


@pytest.mark.parametrize(
    ("joined_before", "taken"), [(timedelta(seconds=20), [("", "new@1")]), (timedelta(hours=1), [])]
)
def test_what_a_member_that_joined_lately_says_first_is_a_move_also_where_the_queue_was_let_go_before(
    apache: Cluster,
    billing: Group,
    members: list[Member],
    now: datetime,
    answers: dict[str, MemberTold | str],
    joined_before: timedelta,
    taken: list[tuple[str, str]],
) -> None:
    old = members[0].client_id
    answers[old] = told()
    asking.ask_round(apache, now)
    seed.make_member(billing, "new@1", now=now, first_seen_at=now - joined_before)
    rounds = ({old: ()}, {old: (), "new@1": (MessageQueue("orders", "broker-a", 0),)})
    for number, held in enumerate(rounds):
        answers.clear()
        answers.update({client_id: told(queues=queues) for client_id, queues in held.items()})
        MemberAnswer.objects.update(asked_at=None)
        asking.ask_round(apache, now + timedelta(minutes=number))
    moves = [move for event in RebalanceEvent.objects.order_by("at") for move in event.details["moves"]]
    assert [(move["from"], move["to"]) for move in moves] == [(old, ""), *taken]


def test_a_queue_that_goes_back_to_a_member_that_was_silent_meanwhile_is_a_move_each_time(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    stopped, other, _ = names(members)
    queue = (MessageQueue("orders", "broker-a", 0),)
    rounds = ({stopped: queue, other: ()}, {other: queue}, {stopped: queue, other: ()})
    for number, held in enumerate(rounds):
        answers.clear()
        answers.update({client_id: told(queues=queues) for client_id, queues in held.items()})
        asking.ask_round(apache, now + timedelta(minutes=number))
        MemberAnswer.objects.update(asked_at=None)
    moves = [move for event in RebalanceEvent.objects.order_by("at") for move in event.details["moves"]]
    assert [(move["from"], move["to"]) for move in moves] == [(stopped, other), (other, stopped)]


def test_a_broadcasting_group_has_no_moves(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    for said in ((), (MessageQueue("orders", "broker-a", 0),)):
        for member in members:
            answers[member.client_id] = told(queues=said, message_model="BROADCASTING")
        asking.ask_round(apache, now)
        MemberAnswer.objects.update(asked_at=None)
    assert not RebalanceEvent.objects.exists()


def test_members_that_keep_their_own_offsets_have_their_turn_wherever_they_are(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    Group.objects.filter(pk=billing.pk).update(message_model="BROADCASTING", member_count=1)
    assert names(asking.turn(apache, now)) == names(members)
    apache.kind = ClusterKind.OURS
    assert names(asking.turn(apache, now)) == names(members)


def test_members_of_a_group_whose_messages_wait_are_asked_before_it_is_stalled(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    Cluster.objects.update(kind=ClusterKind.OURS)
    apache.refresh_from_db()
    have_answered(members, now - timedelta(minutes=1))
    Group.objects.filter(pk=billing.pk).update(behind_since=now - asking.WAITS_LONG + timedelta(seconds=1))
    assert asking.turn(apache, now) == []
    assert names(asking.turn(apache, now + timedelta(seconds=2))) == names(members)


def test_two_members_of_each_of_1000_groups_are_asked_within_two_minutes_however_many_are_in_trouble(
    apache: Cluster, now: datetime
) -> None:
    verdicts = [Verdict.STALLED if number % 3 == 0 else Verdict.OK for number in range(1000)]
    groups, members = many_groups(apache, now, verdicts, member_count=2)
    longest, last = timedelta(), dict.fromkeys([member.pk for member in members], now - ROUND)
    for number in range(16):
        at = now + number * ROUND
        found = asking.turn(apache, at)
        assert len(found) <= asking.URGENT_PER_ROUND + asking.IN_TURN_PER_ROUND
        were_asked(found, at)
        asked = {member.pk for member in found}
        longest = max([longest, *(at - last[pk] for pk in asked)])
        last.update(dict.fromkeys(asked, at))
    assert max(longest, now + 16 * ROUND - min(last.values())) <= timedelta(seconds=105)
    joined = seed.make_member(groups[999], "new@1", now=now)
    assert joined.client_id in names(asking.turn(apache, now + 16 * ROUND)), "who is new is asked in the next round"


def test_1000_members_that_begin_to_wait_together_are_asked_before_any_of_their_groups_is_judged(
    apache: Cluster, now: datetime
) -> None:
    Cluster.objects.update(kind=ClusterKind.OURS)
    apache.refresh_from_db()
    many_groups(apache, now, [Verdict.OK] * 100, member_count=10, behind_since=now)
    stalled = seed.make_group(apache, "stalled", now=now, member_count=9, verdict=Verdict.STALLED)
    Group.objects.filter(pk=stalled.pk).update(behind_since=now - timedelta(days=1))
    seed.make_member(stalled, "x@1", now=now)
    asked: set[int] = set()
    # A round comes up to 15 s after the 20 s, the next one 15 s later, and takes up to 12 s.
    for second in (35, 50):
        at = now + timedelta(seconds=second)
        found = asking.turn(apache, at)
        assert "x@1" in names(found), "who is in trouble has a share, too"
        were_asked(found, at)
        asked |= {one.pk for one in found}
    assert len(asked) == 1001


def test_an_answer_that_says_the_same_begins_no_row_and_another_one_ends_the_former(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    client_id = members[0].client_id
    for minute, answer in enumerate((told("A"), told("A", version=2), told("B", version=3))):
        answers[client_id] = answer
        asking.ask_round(apache, now + timedelta(minutes=minute))
        MemberAnswer.objects.update(asked_at=None)
    rows = OwnSubscription.objects.filter(member=members[0]).order_by("pk")
    assert [(row.expression, row.sub_version, row.ended_at is None) for row in rows] == [
        ("A", 2, False),
        ("B", 3, True),
    ]


def test_a_conflict_is_noted_when_it_is_told_and_gone_when_it_is_mended(
    apache: Cluster, billing: Group, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    for member in members:
        answers[member.client_id] = told("*")
    answers[members[2].client_id] = told("B", version=9)
    asking.ask_round(apache, now)
    conflict = GroupConflict.objects.get(group=billing)
    assert (conflict.kind, conflict.topic_name, conflict.odd_count, conflict.member_count) == (
        "expression",
        "orders",
        1,
        3,
    )
    answers[members[2].client_id] = told("*", version=10)
    MemberAnswer.objects.update(asked_at=None)
    asking.ask_round(apache, now)
    assert not GroupConflict.objects.exists()


def test_a_member_that_was_deleted_while_it_was_asked_is_left_out(
    apache: Cluster, members: list[Member], now: datetime, answers: dict[str, MemberTold | str]
) -> None:
    for member in members:
        answers[member.client_id] = told()
    answers[members[0].client_id] = GONE
    assert asking.ask_round(apache, now) == 2
    assert MemberAnswer.objects.count() == 2


def test_groups_in_which_something_changed_are_asked_again(
    apache: Cluster, billing: Group, members: list[Member], now: datetime
) -> None:
    MemberAnswer.objects.create(member=members[0], asked_at=now)
    assert asking.make_due([billing.pk]) == 1
    assert names(asking.turn(apache, now))[0] == members[0].client_id
