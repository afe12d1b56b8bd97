"""Creates a consumer group on the brokers of a cluster, or changes its settings where a broker has it already.

UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200) to each master. A setting that is not given stays as it is; a new group takes
RocketMQ's default for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField, YesNoField
from mqadmin.actions.brokers import (
    BrokersField,
    ask_cluster,
    chosen_masters,
    left_alone,
    offer_brokers,
    outcomes_by_address,
    refuse_when_none_answers,
    undo_of_creation,
)
from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.groups import delete_group
from mqadmin.groups.rules import SETTINGS, GroupField, config_values, refuse_system_group
from mqadmin.observing.gateway import ChangeFailure, Failures, Gateway, Master
from remoting.wire.bodies.groups import SubscriptionGroupConfig

# More than a message is ever tried again in a day: Apache's default is 16.
RETRY_TIMES_MAX = 1000
RETRY_QUEUES_MAX = 128
# A day: longer, no member is worth waiting for.
CONSUME_TIMEOUT_MINUTES_MAX = 1440


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGroup:
    """The group as each of `brokers` (none: all masters) shall have it. None: as it is, in a new group the default."""

    group: Annotated[str, GroupField(label=gettext_lazy("Name"))]
    consumption: Annotated[
        bool | None,
        YesNoField(
            label=gettext_lazy("Members may consume"),
            help_text=gettext_lazy("A new group's may. If they may not, the broker refuses their pulls."),
        ),
    ] = None
    broadcasting: Annotated[
        bool | None,
        YesNoField(
            label=gettext_lazy("Broadcasting is allowed"),
            help_text=gettext_lazy("In a new group it is: members may each consume all messages if they ask for it."),
        ),
    ] = None
    orderly: Annotated[
        bool | None,
        YesNoField(
            label=gettext_lazy("Consumes in order"),
            help_text=gettext_lazy("A new group does not. Of use to clients of RocketMQ's gRPC proxy alone."),
        ),
    ] = None
    retry_times_max: Annotated[
        int | None,
        CountField(
            label=gettext_lazy("Retries"),
            help_text=gettext_lazy(
                "After so many a message becomes a dead letter. Empty: as it is; 16 in a new group."
            ),
            max_value=RETRY_TIMES_MAX,
        ),
    ] = None
    retry_queues: Annotated[
        int | None,
        CountField(
            label=gettext_lazy("Queues for retries"),
            help_text=gettext_lazy("Of the group's retry topic. Empty: as it is; 1 in a new group."),
            min_value=1,
            max_value=RETRY_QUEUES_MAX,
        ),
    ] = None
    consume_timeout_minutes: Annotated[
        int | None,
        CountField(
            label=gettext_lazy("Time to consume, in minutes"),
            help_text=gettext_lazy("Empty: as it is; 15 in a new group."),
            min_value=1,
            max_value=CONSUME_TIMEOUT_MINUTES_MAX,
        ),
    ] = None
    notifies_members: Annotated[
        bool | None,
        YesNoField(
            label=gettext_lazy("Members are notified when others come and go"),
            help_text=gettext_lazy("In a new group they are. If not, they find out at their next rebalance."),
        ),
    ] = None
    brokers: Annotated[tuple[str, ...], BrokersField()] = ()


@dataclass(frozen=True, slots=True)
class Creation:
    """One broker: what it has now, and the change that is made."""

    address: str
    present: SubscriptionGroupConfig | None
    change: Change


Plan = tuple[Creation, ...]


def preview(cluster: Cluster, arguments: CreateGroup) -> Preview[Plan]:
    """Asks each chosen broker whether it has the group. Raises ActionRefused, ActionUnavailable, ValidationError."""
    refuse_system_group(arguments.group)
    failures = Failures()

    async def ask(gateway: Gateway) -> tuple[list[Master], dict[str, SubscriptionGroupConfig | None]]:
        masters = await chosen_masters(gateway, arguments.brokers)
        return masters, await gateway.groups.configs([one.address for one in masters], arguments.group, failures)

    masters, found = ask_cluster(cluster, ask)
    refuse_when_none_answers(masters, failures.reasons)
    plan = tuple(_creation(arguments, one, found, failures.reasons.get(one.address, "")) for one in masters)
    return Preview(tuple(one.change for one in plan), plan, tuple(_warnings(plan)))


def carry_out(cluster: Cluster, arguments: CreateGroup, preview: Preview[Plan]) -> Iterator[ItemOutcome]:
    """Sends the group to each broker that has it otherwise, or not at all; not to one that did not say what it has."""
    yield from (change.unchanged() for change in preview.changes if not change.is_change)
    yield from left_alone([change for change in preview.changes if change.before is None])
    wanted = {one.address: one for one in preview.plan if one.change.is_change and one.change.before is not None}
    if not wanted:
        return
    given = _given(arguments)
    config = msgspec.structs.replace(SubscriptionGroupConfig(group_name=arguments.group), **given)
    new = [address for address, one in wanted.items() if one.present is None]
    there = [address for address, one in wanted.items() if one.present is not None]

    async def create(gateway: Gateway) -> dict[str, ChangeFailure]:
        failures = await gateway.groups.create(dict.fromkeys(new, config))
        return failures | await gateway.groups.change(there, arguments.group, given)

    failures = ask_cluster(cluster, create)
    yield from outcomes_by_address({address: one.change for address, one in wanted.items()}, failures)


def undo(arguments: CreateGroup, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the deletion of a group that no broker had, or the settings that all brokers had alike."""
    return undo_of_creation(
        DECLARATION.name,
        delete_group.DECLARATION.name,
        {"group": arguments.group},
        arguments.brokers,
        outcomes,
    )


def _creation(
    arguments: CreateGroup, master: Master, found: Mapping[str, SubscriptionGroupConfig | None], failure: str
) -> Creation:
    present = found.get(master.address)
    config = SubscriptionGroupConfig(group_name=arguments.group) if present is None else present
    after = config_values(msgspec.structs.replace(config, **_given(arguments)))
    before = None if master.address not in found else {} if present is None else config_values(present)
    return Creation(master.address, present, Change(master.name, before, after, failure))


def _given(arguments: CreateGroup) -> dict[str, Any]:
    """Returns the settings that are given, by RocketMQ's names."""
    return {field: value for name, field in SETTINGS.items() if (value := getattr(arguments, name)) is not None}


def _warnings(plan: Plan) -> Iterator[str]:
    there = [one for one in plan if one.change.before and one.change.is_change]
    if there:
        yield _("The group is there already, with other settings, on %(brokers)s: these are changed.") % {
            "brokers": ", ".join(one.change.item for one in there)
        }
    unknown = [one.change.item for one in plan if one.change.before is None]
    if unknown:
        words = _("%(brokers)s did not say what it has: nothing is sent there.")
        yield words % {"brokers": ", ".join(unknown)}
    if any(one.change.after["consumption"] is False for one in plan if one.change.is_change):
        yield _("While its members may not consume, the group's messages wait.")


DECLARATION: Action[CreateGroup, Plan] = Action(
    name="create_group",
    title=gettext_lazy("Create a group"),
    permission="mq_clusters.add_group",
    arguments=CreateGroup,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=offer_brokers,
)
