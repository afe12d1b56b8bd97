"""The clients that are online: members of consumer groups and clients of producer groups (RocketMQ's `ConsumerManager`,
`ConsumerGroupInfo`, `ProducerManager`).

The rules that surprise are RocketMQ's own and clients depend on them: a group has *one* subscription table. Of two
expressions for a topic the one with the larger `sub_version` stays; a topic that is absent from a heartbeat is removed
for all; consume type, model and start position are the last heartbeat's. What each member itself subscribes to is
kept beside it, and where the members disagree (`subscription_conflicts.py`).

All members of a group are notified (40) of members that join or leave and of topics that come or go, once per turn of
the event loop, except in broadcast groups and those whose settings say no. Of a lost member they are notified whatever
the settings say, as in RocketMQ: its queues wait for another one.

A client that reconnects is there twice for a moment. RocketMQ notifies the group both times; `MemberEvents` is not
called, because no client joined or left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from broker.engine.event_loop import steady_clock
from broker.engine.groups.subscription_conflicts import SubscriptionConflicts
from remoting.complaints import ComplaintLog
from remoting.connection import Connection
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command

BROADCASTING = "BROADCASTING"


@dataclass(slots=True)
class Client:
    """One connection in one group. Times are ms since the epoch, of the last heartbeat in steady ms too."""

    client_id: str
    connection: Connection
    language: int
    version: int
    online_since_ms: int
    last_heartbeat_ms: int
    last_heartbeat_steady_ms: int

    def heartbeat(self, now_ms: int, steady_ms: int) -> None:
        self.last_heartbeat_ms = now_ms
        self.last_heartbeat_steady_ms = steady_ms


@dataclass(slots=True)
class Member(Client):
    """`subscriptions`: of its last heartbeat that named them; before it, `has_subscriptions` is false."""

    consume_type: str = ""
    message_model: str = ""
    consume_from_where: str = ""
    has_subscriptions: bool = False
    subscriptions: list[SubscriptionData] = field(default_factory=list)


@dataclass(slots=True)
class GroupMembers:
    """`subscriptions` is the table of the whole group, by topic."""

    group: str
    consume_type: str = ""
    message_model: str = ""
    consume_from_where: str = ""
    fingerprint: int = 0
    members: dict[Connection, Member] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    conflicts: SubscriptionConflicts = field(default_factory=SubscriptionConflicts)

    def member(self, client_id: str) -> Member | None:
        return next((member for member in self.members.values() if member.client_id == client_id), None)


class MemberEvents(Protocol):
    """Is called with each change of membership, on the event loop, in order."""

    def joined(self, group: str, member: Member) -> None: ...

    def left(self, group: str, member: Member, *, was_lost: bool) -> None: ...

    def subscribed(self, group: str, member: Member, topics: Iterable[str]) -> None:
        """Is called when a member's subscription changed; the group's table changed at `topics`."""


class Members:
    """`notifies(group)`: whether the group's settings allow notifications. `complaints` gets a line of a client that is
    silent or changes its id. `clock`: ms since the epoch; `steady`: ms that never jump, by which a client counts as
    silent."""

    def __init__(
        self,
        clock: Callable[[], int],
        events: MemberEvents,
        notifies: Callable[[str], bool],
        complaints: ComplaintLog,
        steady: Callable[[], int] = steady_clock,
    ) -> None:
        self._clock = clock
        self._steady = steady
        self._events = events
        self._notifies = notifies
        self._complaints = complaints
        self._groups: dict[str, GroupMembers] = {}
        self._producers: dict[str, dict[Connection, Client]] = {}
        # Client id → its connections, the last one registered last → in which groups.
        self._producer_groups: dict[str, dict[Connection, set[str]]] = {}
        self._to_notify: set[str] = set()

    # reading

    def find(self, group: str) -> GroupMembers | None:
        """Returns None when no member is online."""
        return self._groups.get(group)

    def groups(self) -> list[GroupMembers]:
        return list(self._groups.values())

    def client_id_of(self, connection: Connection, group: str) -> str | None:
        members = self._groups.get(group)
        member = members.members.get(connection) if members is not None else None
        return member.client_id if member is not None else None

    def client_ids(self, group: str) -> list[str]:
        members = self._groups.get(group)
        return [member.client_id for member in members.members.values()] if members is not None else []

    def producers(self, group: str) -> list[Client]:
        return list(self._producers.get(group, {}).values())

    def producer_groups(self) -> list[str]:
        return list(self._producers)

    def producer_connection(self, client_id: str) -> Connection | None:
        """Returns a connection to the producer of that id (`ProducerManager.findChannel`); None when it is offline."""
        connections = self._producer_groups.get(client_id)
        return next(reversed(connections)) if connections else None

    # heartbeats

    def register_consumer(
        self, command: Command, connection: Connection, client_id: str, data: ConsumerData, *, keeps_subscriptions: bool
    ) -> bool:
        """Registers one group of a heartbeat. `keeps_subscriptions`: the client left them out, those known stay.

        Returns False when none are known of this member: its next heartbeat must name them.
        """
        group = self._groups.setdefault(data.group_name, GroupMembers(data.group_name))
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from_where = data.consume_from_where
        elsewhere = group.member(client_id)
        member, has_joined = self._register_member(group, command, connection, client_id)
        member.consume_type, member.message_model = data.consume_type, data.message_model
        member.consume_from_where = data.consume_from_where
        if has_joined and elsewhere is not None:
            member.subscriptions, member.has_subscriptions = elsewhere.subscriptions, elsewhere.has_subscriptions
        subscriptions = None if keeps_subscriptions else data.subscription_data_set
        self._subscribe(group, member, subscriptions, has_joined=has_joined, is_new=has_joined and elsewhere is None)
        return member.has_subscriptions

    def take_subscriptions(
        self, group_name: str, connection: Connection, subscriptions: list[SubscriptionData]
    ) -> None:
        """Takes a member's subscriptions as a heartbeat's; does nothing when it is gone."""
        group = self._groups.get(group_name)
        member = group.members.get(connection) if group is not None else None
        if group is not None and member is not None:
            self._subscribe(group, member, subscriptions, has_joined=False, is_new=False)

    def _subscribe(
        self,
        group: GroupMembers,
        member: Member,
        subscriptions: list[SubscriptionData] | None,
        *,
        has_joined: bool,
        is_new: bool,
    ) -> None:
        """Merges what the member subscribes to, None for what it did before; tells and notifies of what changed."""
        before, changed_topics = member.subscriptions, []
        if subscriptions is not None:
            member.subscriptions, member.has_subscriptions = subscriptions, True
            changed_topics = _merge_subscriptions(group, subscriptions)
        if member.has_subscriptions:
            group.conflicts.record_heartbeat(member.connection, member.client_id, member.subscriptions, self._clock())
        if is_new:
            self._events.joined(group.group, member)
        if changed_topics or _expressions(before) != _expressions(member.subscriptions):
            self._events.subscribed(group.group, member, changed_topics)
        if has_joined or changed_topics:
            self._notify_later(group)

    def _register_member(
        self, group: GroupMembers, command: Command, connection: Connection, client_id: str
    ) -> tuple[Member, bool]:
        now_ms, steady_ms = self._clock(), self._steady()
        member = group.members.get(connection)
        if member is not None and member.client_id == client_id:
            member.heartbeat(now_ms, steady_ms)
            return member, False
        if member is not None:
            # Two clients on one connection take it from each other with each heartbeat.
            words, names = "group %s: %s was %s and is now %s", (member.client_id, client_id)
            self._complaints.warn(
                connection.peer_host[0], "another client id", words, group.group, connection.peer, *names
            )
        member = Member(client_id, connection, command.language, command.version, now_ms, now_ms, steady_ms)
        group.members[connection] = member
        return member, True

    def register_producer(self, command: Command, connection: Connection, client_id: str, group: str) -> None:
        now_ms, steady_ms = self._clock(), self._steady()
        clients = self._producers.setdefault(group, {})
        client = clients.get(connection)
        if client is None or client.client_id != client_id:
            if client is not None:
                self._forget_producer(client.client_id, connection, group)
            client = Client(client_id, connection, command.language, command.version, now_ms, now_ms, steady_ms)
            clients[connection] = client
            self._producer_groups.setdefault(client_id, {}).setdefault(connection, set()).add(group)
        else:
            client.heartbeat(now_ms, steady_ms)

    def is_sub_change(self, groups: Iterable[str], fingerprint: int) -> bool:
        """Tells whether another fingerprint was known for one of the groups (heartbeat V2); remembers this one."""
        changed = False
        for name in groups:
            group = self._groups.get(name)
            if group is not None and group.fingerprint != fingerprint:
                changed = changed or group.fingerprint != 0
                group.fingerprint = fingerprint
        return changed

    # leaving

    def unregister_consumer(self, connection: Connection, group_name: str) -> None:
        self._remove_member(connection, group_name, was_lost=False)

    def unregister_producer(self, connection: Connection, group: str) -> None:
        clients = self._producers.get(group, {})
        client = clients.pop(connection, None)
        if not clients:
            self._producers.pop(group, None)
        if client is not None:
            self._forget_producer(client.client_id, connection, group)

    def _forget_producer(self, client_id: str, connection: Connection, group: str) -> None:
        connections = self._producer_groups.get(client_id, {})
        groups = connections.get(connection, set())
        groups.discard(group)
        if not groups:
            connections.pop(connection, None)
        if not connections:
            self._producer_groups.pop(client_id, None)

    def connection_lost(self, connection: Connection) -> None:
        """Removes the connection's client from its groups."""
        for name in [name for name, group in self._groups.items() if connection in group.members]:
            self._remove_member(connection, name, was_lost=True)
        for name in [name for name, clients in self._producers.items() if connection in clients]:
            self.unregister_producer(connection, name)

    def close_silent(self, expiry_s: float) -> None:
        """Closes the connections of clients that sent no heartbeat for so long; the closing removes them."""
        oldest_ms = self._steady() - int(expiry_s * 1000)
        clients: list[Client] = [member for group in self._groups.values() for member in group.members.values()]
        clients += [client for group in self._producers.values() for client in group.values()]
        for client in clients:
            if client.last_heartbeat_steady_ms < oldest_ms:
                words, peer = "%s (%s) sent no heartbeat for %d s", client.connection.peer
                host = client.connection.peer_host[0]
                self._complaints.warn(host, "no heartbeat", words, client.client_id, peer, expiry_s)
                client.connection.close()

    def _remove_member(self, connection: Connection, group_name: str, *, was_lost: bool) -> None:
        group = self._groups.get(group_name)
        member = group.members.pop(connection, None) if group is not None else None
        if group is None or member is None:
            return
        group.conflicts.remove_member(connection, self._clock())
        if not group.members:
            del self._groups[group_name]
        if group.member(member.client_id) is None:
            self._events.left(group_name, member, was_lost=was_lost)
        self._notify_later(group, is_urgent=was_lost)

    # notifications

    def _notify_later(self, group: GroupMembers, *, is_urgent: bool = False) -> None:
        if group.message_model == BROADCASTING or not (is_urgent or self._notifies(group.group)):
            return
        if not self._to_notify:
            asyncio.get_running_loop().call_soon(self._notify)
        self._to_notify.add(group.group)

    def _notify(self) -> None:
        names, self._to_notify = self._to_notify, set()
        for name in names:
            group = self._groups.get(name)
            for connection in list(group.members) if group is not None else ():
                command = Command(code=RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, ext_fields={"consumerGroup": name})
                connection.requester.send_oneway(command)


def _expressions(subscriptions: list[SubscriptionData]) -> set[tuple[str, str]]:
    return {(subscription.topic, subscription.sub_string) for subscription in subscriptions}


def _merge_subscriptions(group: GroupMembers, subscriptions: list[SubscriptionData]) -> list[str]:
    """Merges as `ConsumerGroupInfo.updateSubscription` does; returns the topics that came or went.

    A newer version replaces silently.
    """
    changed: list[str] = []
    for subscription in subscriptions:
        present = group.subscriptions.get(subscription.topic)
        if present is None:
            changed.append(subscription.topic)
            group.subscriptions[subscription.topic] = subscription
        elif subscription.sub_version > present.sub_version:
            group.subscriptions[subscription.topic] = subscription
    named = {subscription.topic for subscription in subscriptions}
    for topic in [topic for topic in group.subscriptions if topic not in named]:
        changed.append(topic)
        del group.subscriptions[topic]
    return changed
