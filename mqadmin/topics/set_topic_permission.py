"""Lets a topic be read, written or both, on each broker that has it; its queues stay as they are.

UPDATE_AND_CREATE_TOPIC (17) with another `perm`, as Apache's `updateTopicPerm` sends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.brokers import (
    BrokersField,
    ask_cluster,
    chosen_masters,
    common_before,
    left_alone,
    offer_brokers,
    outcomes_by_address,
    refuse_when_none_answers,
    silent_changes,
)
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.observing.gateway import Failures, Gateway, Master
from mqadmin.topics.create_topic import PERMISSIONS
from mqadmin.topics.rules import TopicField, refuse_system_topic
from remoting.wire.bodies.topics import PERM_READ, PERM_WRITE, TopicConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTopicPermission:
    """What clients may do with the topic on each of `brokers` (none: all masters that have it)."""

    topic: Annotated[str, TopicField(label=gettext_lazy("Topic"))]
    perm: Annotated[int, forms.TypedChoiceField(label=gettext_lazy("Permission"), choices=PERMISSIONS, coerce=int)]
    brokers: Annotated[tuple[str, ...], BrokersField()] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests and the changes that they make, by address; `silent` are those of brokers that did not answer."""

    configs: dict[str, TopicConfig]
    changes: dict[str, Change]
    silent: tuple[Change, ...]


def preview(cluster: Cluster, arguments: SetTopicPermission) -> Preview[Plan]:
    """Asks each chosen broker for the present permission. Raises ActionRefused, ActionUnavailable, ValidationError."""
    failures = Failures()

    async def ask(gateway: Gateway) -> tuple[list[Master], Mapping[str, TopicConfig | None]]:
        masters = await chosen_masters(gateway, arguments.brokers)
        return masters, await gateway.topics.configs([one.address for one in masters], arguments.topic, failures)

    masters, found = ask_cluster(cluster, ask)
    refuse_system_topic(arguments.topic, masters)
    refuse_when_none_answers(masters, failures.reasons)
    plan = Plan({}, {}, silent_changes(masters, found, failures.reasons, {"perm": arguments.perm}))
    for master in masters:
        config = found.get(master.address)
        if config is not None:
            # Attributes are sent as changes of them, and none is wanted.
            plan.configs[master.address] = msgspec.structs.replace(config, perm=arguments.perm, attributes={})
            plan.changes[master.address] = Change(master.name, {"perm": config.perm}, {"perm": arguments.perm})
    if not plan.changes:
        words = _("No broker of %(cluster)s that answers has a topic %(topic)s.")
        raise ActionRefused(words % {"cluster": cluster.name, "topic": arguments.topic})
    warnings = [*_silent(masters, found, failures.reasons), *_effects(arguments.perm)]
    return Preview((*plan.changes.values(), *plan.silent), plan, tuple(warnings))


def carry_out(cluster: Cluster, _arguments: SetTopicPermission, preview: Preview[Plan]) -> Iterator[ItemOutcome]:
    """Sends the permission to each broker that has another."""
    plan = preview.plan
    yield from (change.unchanged() for change in preview.changes if not change.is_change)
    wanted = {address: change for address, change in plan.changes.items() if change.is_change}
    if wanted:
        configs = {address: plan.configs[address] for address in wanted}
        failures = ask_cluster(cluster, lambda gateway: gateway.topics.create(configs))
        yield from outcomes_by_address(wanted, failures)
    yield from left_alone(plan.silent)


def undo(arguments: SetTopicPermission, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the permission that all brokers had alike."""
    before = common_before(outcomes)
    if not before or before["perm"] not in dict(PERMISSIONS):
        return None
    brokers = {"brokers": list(arguments.brokers)} if arguments.brokers else {}
    return Undo(DECLARATION.name, {"topic": arguments.topic, **before, **brokers})


def _silent(
    masters: Sequence[Master], found: Mapping[str, TopicConfig | None], failures: Mapping[str, str]
) -> Iterator[str]:
    for master in masters:
        if master.address not in found:
            words = _("%(broker)s did not answer and keeps the permission that it has: %(reason)s")
            yield words % {"broker": master.name, "reason": failures.get(master.address, "")}


def _effects(perm: int) -> Iterator[str]:
    if not perm & PERM_WRITE:
        yield _("Producers are refused from now on.")
    if not perm & PERM_READ:
        yield _("Consumers are refused from now on, and messages wait.")


DECLARATION: Action[SetTopicPermission, Plan] = Action(
    name="set_topic_permission",
    title=gettext_lazy("Set the permission"),
    permission="mq_clusters.change_topic",
    arguments=SetTopicPermission,
    subject="topic",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=offer_brokers,
)
