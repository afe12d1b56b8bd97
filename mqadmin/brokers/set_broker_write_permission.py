"""Lets producers find a broker, or hides it from them: before it is stopped for maintenance.

WIPE_WRITE_PERM_OF_BROKER (205) and ADD_WRITE_PERM_OF_BROKER (327) to each name server, as Apache's `wipeWritePerm` and
`addWritePerm`. It is in the memory of name servers alone: a broker that registers a changed topic has it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import YesNoField
from mqadmin.actions.brokers import ask_cluster, common_before, outcomes_by_address
from mqadmin.actions.declaration import Action, ActionUnavailable, Change, ItemOutcome, Preview, Undo
from mqadmin.brokers.rules import BrokerField, master_named
from mqadmin.clusters.models import Cluster, TopicKind
from mqadmin.observing.gateway import Failures, Gateway
from remoting.wire.names import AUTO_CREATE_TOPIC

# Of the cluster, whose routes tell what a name server lets producers do.
TOPICS_ASKED_MAX = 5
_CHOICES = (("true", gettext_lazy("may write to it")), ("false", gettext_lazy("may not write to it")))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBrokerWritePermission:
    """Whether name servers let producers write to the topics of `broker`."""

    broker: Annotated[str, BrokerField()]
    writing: Annotated[bool, YesNoField(label=gettext_lazy("Producers"), choices=_CHOICES)]


# The changes by the name servers' addresses.
Plan = dict[str, Change]


def preview(cluster: Cluster, arguments: SetBrokerWritePermission) -> Preview[Plan]:
    """Asks each name server what it lets producers do now. Raises ActionRefused, ActionUnavailable."""
    failures = Failures()
    topics = [arguments.broker, AUTO_CREATE_TOPIC, *_some_topics(cluster, arguments.broker)]

    async def ask(gateway: Gateway) -> dict[str, bool | None]:
        master = await master_named(gateway, arguments.broker)
        return await gateway.broker_settings.writing(master.name, topics, failures)

    found = ask_cluster(cluster, ask)
    if not found:
        raise ActionUnavailable(" ".join(failures.reasons.values()))
    plan = {
        address: Change(
            f"namesrv {address}", None if writing is None else {"writing": writing}, {"writing": arguments.writing}
        )
        for address, writing in found.items()
    }
    plan |= {
        address: Change(f"namesrv {address}", None, {"writing": arguments.writing}, note=reason)
        for address, reason in failures.reasons.items()
    }
    return Preview(tuple(plan.values()), plan, tuple(_warnings(arguments)))


def carry_out(cluster: Cluster, arguments: SetBrokerWritePermission, preview: Preview[Plan]) -> Iterator[ItemOutcome]:
    """Sends it to each name server that lets producers do otherwise."""
    yield from (change.unchanged() for change in preview.changes if not change.is_change)
    wanted = {address: change for address, change in preview.plan.items() if change.is_change}
    if wanted:
        failures = ask_cluster(
            cluster,
            lambda gateway: gateway.broker_settings.set_writing(wanted, arguments.broker, is_allowed=arguments.writing),
        )
        yield from outcomes_by_address(wanted, failures)


def undo(arguments: SetBrokerWritePermission, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite, where all name servers let producers do the same before."""
    before = common_before(outcomes)
    return Undo(DECLARATION.name, {"broker": arguments.broker, **before}) if before else None


def _some_topics(cluster: Cluster, broker: str) -> list[str]:
    found = cluster.topics.filter(kind=TopicKind.NORMAL, queues__broker_name=broker, perm=6).distinct().order_by("name")
    return list(found.values_list("name", flat=True)[:TOPICS_ASKED_MAX])


def _warnings(arguments: SetBrokerWritePermission) -> Iterator[str]:
    if arguments.writing:
        yield _(
            "All its topics can be read and written then: a topic that allowed less loses that on the name servers."
        )
    else:
        yield _("Producers turn to other brokers within half a minute; with none they fail. Consumers go on.")
        yield _("A broker that registers a changed topic, or starts again, can be written to again.")


DECLARATION: Action[SetBrokerWritePermission, Plan] = Action(
    name="set_broker_write_permission",
    title=gettext_lazy("Allow or stop writing"),
    permission="mq_clusters.change_broker",
    arguments=SetBrokerWritePermission,
    subject="broker",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
