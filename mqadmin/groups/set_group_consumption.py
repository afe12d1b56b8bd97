"""Lets the members of a group consume, or not, on each broker of the cluster.

UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200) with `consumeEnable`; the group's other settings are sent as they are. Brokers
refuse the pulls of a group that may not consume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mqadmin.actions.arguments import YesNoField
from mqadmin.actions.brokers import (
    ask_cluster,
    common_before,
    left_alone,
    outcomes_by_address,
    refuse_when_none_answers,
    silent_changes,
)
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.groups.rules import GroupField, refuse_system_group
from mqadmin.observing.gateway import Failures, Gateway, Master
from remoting.wire.bodies.groups import SubscriptionGroupConfig

_ON_OFF = (("true", gettext_lazy("may consume")), ("false", gettext_lazy("may not consume")))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGroupConsumption:
    """Whether the brokers that have the group let its members consume."""

    group: Annotated[str, GroupField(label=gettext_lazy("Group"))]
    consumption: Annotated[bool, YesNoField(label=gettext_lazy("Its members"), choices=_ON_OFF)]


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes by address; `silent` are those of brokers that did not answer."""

    changes: dict[str, Change]
    silent: tuple[Change, ...]


def preview(cluster: Cluster, arguments: SetGroupConsumption) -> Preview[Plan]:
    """Asks every broker how it has the group, and who is online. Raises ActionRefused, ActionUnavailable."""
    refuse_system_group(arguments.group)
    failures = Failures()

    async def ask(gateway: Gateway) -> tuple[list[Master], Mapping[str, SubscriptionGroupConfig | None], set[str]]:
        masters = await gateway.masters()
        addresses = [one.address for one in masters]
        found = await gateway.groups.configs(addresses, arguments.group, failures)
        there = [address for address, config in found.items() if config is not None]
        return masters, found, await gateway.groups.members(there, arguments.group, failures)

    masters, found, members = ask_cluster(cluster, ask)
    refuse_when_none_answers(masters, failures.reasons)
    plan = Plan({}, silent_changes(masters, found, failures.reasons, {"consumption": arguments.consumption}))
    for master in masters:
        config = found.get(master.address)
        if config is not None:
            before, after = {"consumption": config.consume_enable}, {"consumption": arguments.consumption}
            plan.changes[master.address] = Change(master.name, before, after)
    if not plan.changes:
        words = _("No broker of %(cluster)s that answers has a group %(group)s.")
        raise ActionRefused(words % {"cluster": cluster.name, "group": arguments.group})
    warnings = [*_silent(masters, found, failures.reasons), *_effects(arguments, members)]
    return Preview((*plan.changes.values(), *plan.silent), plan, tuple(warnings))


def carry_out(cluster: Cluster, arguments: SetGroupConsumption, preview: Preview[Plan]) -> Iterator[ItemOutcome]:
    """Sends the setting to each broker that has it otherwise."""
    yield from (change.unchanged() for change in preview.changes if not change.is_change)
    wanted = {address: change for address, change in preview.plan.changes.items() if change.is_change}
    if wanted:
        settings = {"consume_enable": arguments.consumption}
        failures = ask_cluster(cluster, lambda gateway: gateway.groups.change(wanted, arguments.group, settings))
        yield from outcomes_by_address(wanted, failures)
    yield from left_alone(preview.plan.silent)


def undo(arguments: SetGroupConsumption, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite, where all brokers had it alike."""
    before = common_before(outcomes)
    return Undo(DECLARATION.name, {"group": arguments.group, **before}) if before else None


def _silent(
    masters: Sequence[Master], found: Mapping[str, SubscriptionGroupConfig | None], failures: Mapping[str, str]
) -> Iterator[str]:
    for master in masters:
        if master.address not in found:
            words = _("%(broker)s did not answer and keeps the setting that it has: %(reason)s")
            yield words % {"broker": master.name, "reason": failures.get(master.address, "")}


def _effects(arguments: SetGroupConsumption, members: set[str]) -> Iterator[str]:
    if arguments.consumption:
        return
    if members:
        yield ngettext(
            "%(n)s member is online: its pulls are refused from now on, and the group's messages wait.",
            "%(n)s members are online: their pulls are refused from now on, and the group's messages wait.",
            len(members),
        ) % {"n": len(members)}
    else:
        yield _("The group's messages wait until its members may consume again.")


DECLARATION: Action[SetGroupConsumption, Plan] = Action(
    name="set_group_consumption",
    title=gettext_lazy("Allow or stop consumption"),
    permission="mq_clusters.change_group",
    arguments=SetGroupConsumption,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
