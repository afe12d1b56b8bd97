"""Deletes a consumer group: its settings, its progress and its retry topic; its dead letters if that is asked for.

DELETE_SUBSCRIPTIONGROUP (207) with its offsets to each master, then its topics as `delete_topic` does: on the brokers
(215), and when those have done it on the name servers (216). Apache's `deleteSubGroup` does the same, and always
deletes the dead letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mqadmin.actions.brokers import ask_cluster, outcomes_by_address, refuse_when_none_answers
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, ItemState, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.groups.rules import GroupField, config_values, refuse_system_group
from mqadmin.observing.gateway import Failures, Gateway, GroupOnBroker, Master
from remoting.wire.names import dlq_topic, retry_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroup:
    """The group that all brokers of the cluster shall forget."""

    group: Annotated[str, GroupField(label=gettext_lazy("Group"))]
    dead_letters: Annotated[
        bool,
        forms.BooleanField(
            label=gettext_lazy("Delete its dead letters, too"),
            help_text=gettext_lazy("Otherwise their topic stays, and they can be read and replayed later."),
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of brokers by address, and which of the group's topics are to go from which of them."""

    rocketmq_cluster: str
    on_brokers: dict[str, Change]
    topics: dict[str, tuple[str, ...]]


def preview(cluster: Cluster, arguments: DeleteGroup) -> Preview[Plan]:
    """Asks every broker what it has of the group, and who is online. Raises ActionRefused, ActionUnavailable."""
    refuse_system_group(arguments.group)
    failures = Failures()

    async def ask(gateway: Gateway) -> tuple[list[Master], dict[str, GroupOnBroker]]:
        masters = await gateway.masters()
        return masters, await gateway.groups.on_brokers([one.address for one in masters], arguments.group, failures)

    masters, found = ask_cluster(cluster, ask)
    refuse_when_none_answers(masters, failures.reasons)
    changes: dict[str, Change] = {}
    topics: dict[str, tuple[str, ...]] = {}
    for master in masters:
        there = found.get(master.address)
        if there is None:
            changes[master.address] = Change(master.name, None, {}, note=failures.reasons.get(master.address, ""))
            topics[master.address] = _topics(arguments, None)
        elif there.is_there:
            changes[master.address] = Change(master.name, _before(there), {})
            topics[master.address] = _topics(arguments, there)
    if not any(one.is_there for one in found.values()):
        words = _("No broker of %(cluster)s that answers has a group %(group)s (any more).")
        raise ActionRefused(words % {"cluster": cluster.name, "group": arguments.group})
    return Preview(
        tuple(changes.values()),
        Plan(masters[0].cluster, changes, topics),
        tuple(_warnings(arguments, list(found.values()))),
        rests_on=_rests_on(masters, found),
    )


def carry_out(cluster: Cluster, arguments: DeleteGroup, preview: Preview[Plan]) -> Iterator[ItemOutcome]:
    """Deletes the group on the brokers, then its topics where that was done."""
    plan = preview.plan
    failures = ask_cluster(cluster, lambda gateway: gateway.groups.delete(plan.on_brokers, arguments.group))
    outcomes = dict(zip(plan.on_brokers, outcomes_by_address(plan.on_brokers, failures), strict=True))
    done = [address for address, one in outcomes.items() if one.state == ItemState.DONE]
    left = _delete_topics(cluster, plan, done)
    for address, outcome in outcomes.items():
        change = plan.on_brokers[address]
        yield change.failed(left[address]) if address in left else outcome


def _delete_topics(cluster: Cluster, plan: Plan, addresses: Sequence[str]) -> dict[str, str]:
    """Deletes the group's topics; returns by broker why one was left. Routes go when no broker has the topic."""
    left: dict[str, str] = {}

    async def delete(gateway: Gateway) -> None:
        for topic in sorted({topic for address in addresses for topic in plan.topics[address]}):
            there = [address for address in addresses if topic in plan.topics[address]]
            failures = await gateway.topics.delete(there, topic)
            for address, failure in failures.items():
                words = _("The group is deleted; its topic %(topic)s is not: %(reason)s")
                left.setdefault(address, words % {"topic": topic, "reason": failure.reason})
            if not failures and len(addresses) == len(plan.on_brokers):
                routes = await gateway.topics.routes(topic, Failures())
                await gateway.topics.delete_route(routes, topic, plan.rocketmq_cluster)

    ask_cluster(cluster, delete)
    return left


def _topics(arguments: DeleteGroup, there: GroupOnBroker | None) -> tuple[str, ...]:
    """Returns those of the group's topics that are to go from a broker; None: one that did not say what it has."""
    topics = []
    if there is None or there.retry_count is not None:
        topics.append(retry_topic(arguments.group))
    if arguments.dead_letters and (there is None or there.dead_count is not None):
        topics.append(dlq_topic(arguments.group))
    return tuple(topics)


def _before(there: GroupOnBroker) -> dict[str, Any]:
    counts = {"lag": there.lag, "retries": there.retry_count, "dead_letters": there.dead_count}
    return {
        **(config_values(there.config) if there.config is not None else {}),
        "members": list(there.members),
        **{name: count for name, count in counts.items() if count is not None},
    }


def _rests_on(masters: Sequence[Master], found: Mapping[str, GroupOnBroker]) -> dict[str, object]:
    """Returns settings and members by broker; lag changes all the time."""
    return {
        master.name: [config_values(there.config) if there.config is not None else None, list(there.members)]
        for master in masters
        if (there := found.get(master.address)) is not None
    }


def _warnings(arguments: DeleteGroup, found: Sequence[GroupOnBroker]) -> Iterator[str]:
    members = {member for one in found for member in one.members}
    if members:
        yield ngettext(
            "%(n)s member is online: with its next heartbeat it may bring the group back, without its progress. Stop it"
            " first.",
            "%(n)s members are online: with their next heartbeat they may bring the group back, without its progress."
            " Stop them first.",
            len(members),
        ) % {"n": len(members)}
    yield _lag_words([one.lag for one in found])
    waiting = sum(one.retry_count or 0 for one in found)
    if waiting:
        yield _("Messages that wait for another try are deleted with its retry topic.")
    dead = sum(one.dead_count or 0 for one in found)
    if dead and arguments.dead_letters:
        yield ngettext("%(n)s dead letter is deleted.", "%(n)s dead letters are deleted.", dead) % {"n": f"{dead:,}"}
    elif dead:
        yield ngettext("%(n)s dead letter stays.", "%(n)s dead letters stay.", dead) % {"n": f"{dead:,}"}


def _lag_words(lags: Sequence[int | None]) -> str:
    if any(lag is None for lag in lags):
        return _("How far it is behind is not known. Its progress is lost.")
    lag = sum(lag or 0 for lag in lags)
    if lag == 0:
        return _("It has consumed all of its topics. Its progress is lost.")
    return ngettext(
        "%(n)s message is not consumed yet. The group's progress is lost.",
        "%(n)s messages are not consumed yet. The group's progress is lost.",
        lag,
    ) % {"n": f"{lag:,}"}


DECLARATION: Action[DeleteGroup, Plan] = Action(
    name="delete_group",
    title=gettext_lazy("Delete the group"),
    permission="mq_clusters.delete_group",
    arguments=DeleteGroup,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    is_confirmed_by_name=True,
)
