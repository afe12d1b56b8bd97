"""Creates a topic on the brokers of a cluster, or changes its queues and permission where a broker has it already.

UPDATE_AND_CREATE_TOPIC (17) to each master. Attributes, order and flags of a topic that is there stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField
from mqadmin.actions.brokers import (
    BrokersField,
    ask_cluster,
    chosen_masters,
    offer_brokers,
    outcomes_by_address,
    refuse_when_none_answers,
    undo_of_creation,
)
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.observing.gateway import Failures, Gateway, Master
from mqadmin.topics import delete_topic
from mqadmin.topics.rules import TopicField, config_values, refuse_system_topic
from remoting.wire.bodies.topics import PERM_READ, PERM_READ_WRITE, PERM_WRITE, TopicConfig
from remoting.wire.names import is_dlq_topic, is_retry_topic

# More than this our own broker refuses.
QUEUES_MAX = 10_000
QUEUES_DEFAULT = 8
PERMISSIONS = (
    (PERM_READ_WRITE, gettext_lazy("read and write")),
    (PERM_READ, gettext_lazy("read only")),
    (PERM_WRITE, gettext_lazy("write only")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """The topic as each of `brokers` (none: all masters) shall have it."""

    topic: Annotated[str, TopicField(label=gettext_lazy("Name"))]
    read_queues: Annotated[
        int,
        CountField(
            label=gettext_lazy("Queues to read"),
            help_text=gettext_lazy("On each broker. A group can have as many members at work as there are queues."),
            min_value=1,
            max_value=QUEUES_MAX,
        ),
    ] = QUEUES_DEFAULT
    write_queues: Annotated[
        int,
        CountField(
            label=gettext_lazy("Queues to write"),
            help_text=gettext_lazy("On each broker. Producers use these; as a rule as many as there are to read."),
            min_value=1,
            max_value=QUEUES_MAX,
        ),
    ] = QUEUES_DEFAULT
    perm: Annotated[int, forms.TypedChoiceField(label=gettext_lazy("Permission"), choices=PERMISSIONS, coerce=int)] = (
        PERM_READ_WRITE
    )
    brokers: Annotated[tuple[str, ...], BrokersField()] = ()


@dataclass(frozen=True, slots=True)
class Creation:
    """The request to one broker, and the change that it makes."""

    address: str
    config: TopicConfig
    change: Change


Plan = tuple[Creation, ...]


def preview(cluster: Cluster, arguments: CreateTopic) -> Preview[Plan]:
    """Asks each chosen broker whether it has the topic. Raises ActionRefused, ActionUnavailable, ValidationError."""
    failures = Failures()

    async def ask(gateway: Gateway) -> tuple[list[Master], dict[str, TopicConfig | None]]:
        masters = await chosen_masters(gateway, arguments.brokers)
        return masters, await gateway.topics.configs([one.address for one in masters], arguments.topic, failures)

    masters, found = ask_cluster(cluster, ask)
    _refuse_reserved(arguments.topic, masters)
    refuse_when_none_answers(masters, failures.reasons)
    plan = tuple(_creation(arguments, one, found, failures) for one in masters)
    changes = tuple(creation.change for creation in plan)
    return Preview(changes, plan, tuple(_warnings(changes)))


def carry_out(cluster: Cluster, _arguments: CreateTopic, preview: Preview[Plan]) -> Iterator[ItemOutcome]:
    """Sends the topic to each broker that has it otherwise, or not at all."""
    yield from (change.unchanged() for change in preview.changes if not change.is_change)
    wanted = {one.address: one for one in preview.plan if one.change.is_change}
    if wanted:
        configs = {address: one.config for address, one in wanted.items()}
        failures = ask_cluster(cluster, lambda gateway: gateway.topics.create(configs))
        yield from outcomes_by_address({address: one.change for address, one in wanted.items()}, failures)


def undo(arguments: CreateTopic, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the deletion of a topic that no broker had, or the settings that all brokers had alike."""
    return undo_of_creation(
        DECLARATION.name,
        delete_topic.DECLARATION.name,
        {"topic": arguments.topic},
        arguments.brokers,
        outcomes,
    )


def _refuse_reserved(topic: str, masters: Sequence[Master]) -> None:
    refuse_system_topic(topic, masters)
    if is_retry_topic(topic) or is_dlq_topic(topic):
        words = _("Topics that begin with %%RETRY%% or %%DLQ%% belong to a group, and are made when it needs them.")
        raise ActionRefused(words % {})


def _creation(
    arguments: CreateTopic, master: Master, found: Mapping[str, TopicConfig | None], failures: Failures
) -> Creation:
    present = found.get(master.address)
    config = TopicConfig(topic_name=arguments.topic) if present is None else present
    # Attributes are sent as changes of them, and none is wanted.
    config = msgspec.structs.replace(
        config,
        read_queue_nums=arguments.read_queues,
        write_queue_nums=arguments.write_queues,
        perm=arguments.perm,
        attributes={},
    )
    before = None if master.address not in found else {} if present is None else config_values(present)
    note = failures.reasons.get(master.address, "")
    return Creation(master.address, config, Change(master.name, before, config_values(config), note))


def _warnings(changes: Sequence[Change]) -> Iterator[str]:
    there = [change for change in changes if change.before and change.is_change]
    if there:
        yield _("The topic is there already, with other settings, on %(brokers)s: these are changed.") % {
            "brokers": ", ".join(change.item for change in there)
        }
    if any(_has_fewer_queues(change) for change in there):
        yield _(
            "With fewer queues to read, what is stored in the last ones is not consumed until there are as many again."
        )


def _has_fewer_queues(change: Change) -> bool:
    return change.before is not None and change.before["read_queues"] > change.after["read_queues"]


DECLARATION: Action[CreateTopic, Plan] = Action(
    name="create_topic",
    title=gettext_lazy("Create a topic"),
    permission="mq_clusters.add_topic",
    arguments=CreateTopic,
    subject="topic",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=offer_brokers,
)
