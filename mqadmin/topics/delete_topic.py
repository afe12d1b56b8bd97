"""Deletes a topic: its settings, every group's progress on it and all its messages.

DELETE_TOPIC_IN_BROKER (215) to each master, then DELETE_TOPIC_IN_NAMESRV (216) to each name server, as Apache's
`DefaultMQAdminExt` does. While one broker still has the topic, its route stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mqadmin.actions.brokers import ask_cluster, outcomes_by_address, refuse_when_none_answers
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, ItemState, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.flows.words import producers_words
from mqadmin.observing.gateway import Failures, Gateway, Master, ProducersTold, TopicOnBroker
from mqadmin.producers.asking import ASK_TIMEOUT_S, seen_groups
from mqadmin.topics.rules import TopicField, config_values, refuse_system_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic:
    """The topic that all brokers and name servers of the cluster shall forget."""

    topic: Annotated[str, TopicField(label=gettext_lazy("Topic"))]


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes by address; brokers first."""

    rocketmq_cluster: str
    on_brokers: dict[str, Change]
    on_name_servers: dict[str, Change]


@dataclass(frozen=True, slots=True)
class _Found:
    """The answers of brokers and name servers by address; `failures` names those that gave none.

    `producers`: of the brokers that have the topic; `untold` names those of them that did not say which they have.
    """

    masters: Sequence[Master]
    on_brokers: Mapping[str, TopicOnBroker | None]
    routes: Mapping[str, list[str]]
    failures: Mapping[str, str]
    producers: ProducersTold
    untold: Mapping[str, str]


def preview(cluster: Cluster, arguments: DeleteTopic) -> Preview[Plan]:
    """Asks every broker what it has of the topic, who reads it, and which producers are connected.

    Raises ActionRefused, ActionUnavailable.
    """
    known = seen_groups(cluster)
    found = ask_cluster(cluster, lambda gateway: _ask(gateway, arguments.topic, known))
    refuse_system_topic(arguments.topic, found.masters)
    refuse_when_none_answers(found.masters, found.failures)
    plan = Plan(found.masters[0].cluster, _on_brokers(found), _on_name_servers(found))
    changes = (*plan.on_brokers.values(), *plan.on_name_servers.values())
    if not changes:
        raise ActionRefused(
            _("No broker of %(cluster)s has a topic %(topic)s (any more).")
            % {"cluster": cluster.name, "topic": arguments.topic}
        )
    warnings = (*_warnings(found), *_producer_words(cluster, found))
    return Preview(changes, plan, warnings, rests_on=_rests_on(found))


def carry_out(cluster: Cluster, arguments: DeleteTopic, preview: Preview[Plan]) -> Iterator[ItemOutcome]:
    """Deletes the topic on the brokers, and its routes when all of them have."""
    plan = preview.plan
    failures = ask_cluster(cluster, lambda gateway: gateway.topics.delete(plan.on_brokers, arguments.topic))
    outcomes = list(outcomes_by_address(plan.on_brokers, failures))
    yield from outcomes
    if any(one.state != ItemState.DONE for one in outcomes):
        words = _("Left as it is while a broker has the topic.")
        yield from (change.skipped(words) for change in plan.on_name_servers.values())
        return
    failures = ask_cluster(
        cluster,
        lambda gateway: gateway.topics.delete_route(plan.on_name_servers, arguments.topic, plan.rocketmq_cluster),
    )
    yield from outcomes_by_address(plan.on_name_servers, failures)


async def _ask(gateway: Gateway, topic: str, producer_groups: Sequence[str]) -> _Found:
    failures, untold = Failures(), Failures()
    masters = await gateway.masters()
    on_brokers = await gateway.topics.on_brokers([one.address for one in masters], topic, failures)
    routes = await gateway.topics.routes(topic, failures)
    having = [address for address, there in on_brokers.items() if there is not None]
    producers = await gateway.clients.all_producers(having, producer_groups, untold, timeout_s=ASK_TIMEOUT_S)
    return _Found(masters, on_brokers, routes, failures.reasons, producers, untold.reasons)


def _on_brokers(found: _Found) -> dict[str, Change]:
    """Returns the changes of brokers that have the topic, and of those that did not answer and may have it."""
    changes = {}
    for master in found.masters:
        there = found.on_brokers.get(master.address)
        if there is not None:
            before = {**config_values(there.config), "messages": there.message_count, "groups": list(there.lag)}
            changes[master.address] = Change(master.name, before, {})
        elif master.address in found.failures:
            changes[master.address] = Change(master.name, None, {}, note=found.failures[master.address])
    return changes


def _on_name_servers(found: _Found) -> dict[str, Change]:
    """Returns the changes of name servers that route it to these brokers, and of those that did not answer."""
    names = {master.name for master in found.masters}
    routes = {address: [name for name in brokers if name in names] for address, brokers in found.routes.items()}
    changes = {
        address: Change(_item(address), {"route": brokers}, {}) for address, brokers in routes.items() if brokers
    }
    addresses = {master.address for master in found.masters}
    for address, reason in found.failures.items():
        if address not in addresses:
            changes[address] = Change(_item(address), None, {}, note=reason)
    return changes


def _item(name_server: str) -> str:
    return f"namesrv {name_server}"


def _rests_on(found: _Found) -> dict[str, object]:
    """Returns settings and readers by broker; the number of messages changes all the time."""
    return {
        master.name: [config_values(there.config), list(there.lag)]
        for master in found.masters
        if (there := found.on_brokers.get(master.address)) is not None
    }


def _warnings(found: _Found) -> Iterator[str]:
    there = [one for one in found.on_brokers.values() if one is not None]
    messages = sum(one.message_count for one in there)
    if messages:
        yield ngettext("%(n)s message is deleted with it.", "%(n)s messages are deleted with it.", messages) % {
            "n": f"{messages:,}"
        }
    lag: Counter[str] = Counter()
    unknown = set()
    for one in there:
        for group, of_group in one.lag.items():
            lag[group] += of_group or 0
            if of_group is None:
                unknown.add(group)
    for group in sorted(lag):
        yield _reader_words(group, lag[group], is_known=group not in unknown)
    if there:
        yield _(
            "Whoever goes on sending to it creates it anew, with the broker's own settings, where brokers create topics"
            " on first use."
        )


def _producer_words(cluster: Cluster, found: _Found) -> Iterator[str]:
    clients = {(one.group, one.client_id) for told in found.producers.by_broker.values() for one in told}
    names = {master.address: master.name for master in found.masters}
    untold = {names.get(address, address): why for address, why in found.untold.items()}
    named_only = sorted(names.get(address, address) for address in found.producers.named_only)
    return producers_words(cluster, Counter(group for group, _client in clients), untold, named_only)


def _reader_words(group: str, lag: int, *, is_known: bool) -> str:
    if not is_known:
        return _("%(group)s reads it; how far it is behind is not known. Its progress is lost.") % {"group": group}
    if lag == 0:
        return _("%(group)s reads it and has consumed all of it. Its progress is lost.") % {"group": group}
    return ngettext(
        "%(group)s reads it and never gets the %(n)s message that it has not consumed yet. Its progress is lost.",
        "%(group)s reads it and never gets the %(n)s messages that it has not consumed yet. Its progress is lost.",
        lag,
    ) % {"group": group, "n": f"{lag:,}"}


DECLARATION: Action[DeleteTopic, Plan] = Action(
    name="delete_topic",
    title=gettext_lazy("Delete the topic"),
    permission="mq_clusters.delete_topic",
    arguments=DeleteTopic,
    subject="topic",
    preview=preview,
    carry_out=carry_out,
    is_confirmed_by_name=True,
)
