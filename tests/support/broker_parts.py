"""The parts of a broker for tests of one processor: real ones on a real store, and a connection without a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from broker.engine.config import BrokerConfig
from broker.engine.filters.subscriptions import SubscriptionFilters
from broker.engine.groups.group_configs import Groups
from broker.engine.groups.member_calls import MemberCalls
from broker.engine.groups.members import Members
from broker.engine.groups.newer_subscriptions import NewerSubscriptions
from broker.engine.groups.offsets import Offsets
from broker.engine.groups.queue_locks import QueueLocks
from broker.engine.processors.pull_message import PullMessage
from broker.engine.processors.send_message import SendMessage
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.sending.accepting import Accepting
from broker.engine.serving.held_pulls import HeldPulls
from broker.engine.serving.requests import Processor, Request
from broker.engine.stats import BrokerStats
from broker.engine.topics.topic_configs import Topics
from broker.engine.transactions.progress import ProgressKeeper
from broker.engine.transactions.transactions import Transactions
from broker.engine.watch.watch import Watch
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.bodies.heartbeat import ConsumerData, SubscriptionData
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.codes import OUR_VERSION
from remoting.wire.command import Command, response
from remoting.wire.errors import WireError
from remoting.wire.message_id import UniqueKeyFactory
from tests.support.delay_levels import DEFAULT_LEVELS
from tests.support.stores import SMALL, ManualClock, open_store


def save_topic(topics: Topics, topic: TopicConfig) -> None:
    topics.file.save({topic.topic_name: topic})


def save_group(groups: Groups, group: SubscriptionGroupConfig) -> None:
    groups.file.save({group.group_name: group})


class Wire:
    """A connection's face to a processor; keeps what is sent on it."""

    peer = "127.0.0.1:40000"
    peer_host = ("127.0.0.1", 40000)

    def __init__(self) -> None:
        self.sent: list[Command] = []
        self.is_open = True
        self.is_write_paused = False
        self.is_turn_over = False
        self.waited_s = self.turn_began_s = 0.0
        self.waiting_count = 0
        self.context: dict[str, Any] = {}

    def request(self, command: Command, timeout_ms: int) -> asyncio.Future[Command]:
        """A client that answers nothing."""
        raise ConnectionError("closed")

    def send(self, command: Command) -> None:
        if self.is_open:
            self.sent.append(command)


class BrokerParts:
    """Composed as the runtime does it, without sockets and timers. Close it with `close`."""

    def __init__(self, folder: Path, clock: ManualClock | None = None, **settings: Any) -> None:
        self.config = BrokerConfig(store=folder, flush="async", port=10911, **settings)
        self.clock = clock or ManualClock()
        self.store = open_store(folder, SMALL, self.clock)
        self.watch = Watch(self.clock)
        self.complaints = ComplaintLog(clock=lambda: self.clock() / 1000)
        self.topics = Topics(folder / "config", self.config, self.watch.topic_changed, self.complaints)
        self.groups = Groups(folder / "config", self.config, self.watch.group_changed, self.complaints)
        self.topics.load()
        self.groups.load()
        self.members = Members(self.clock, self.watch, lambda _: False, self.complaints, self.clock)
        self.locks = QueueLocks(self.clock)
        self.offsets = Offsets(folder / "config", self.watch.committed, self.complaints)
        self.stats = BrokerStats(self.clock)
        self.held_pulls = HeldPulls(self.store.max_offset, self.store.properties_of, self.complaints)
        self.filters = SubscriptionFilters(has_sql=self.config.property_filter)
        self.store.add_append_listeners(self.held_pulls.appended)
        self.levels = LevelHistory(folder / "config", DEFAULT_LEVELS)
        self.accepting = Accepting(self.store, self.levels, self.clock, self.config, self.stats, self.complaints)
        self.transactions = Transactions(
            self.store,
            self.accepting,
            self.members,
            ProgressKeeper(folder / "config", self.offsets),
            self.config,
            self.complaints,
            before_giving_up=lambda: None,
            on_earlier_due=lambda: None,
            clock=self.clock,
        )
        self.store.add_append_listeners(self.transactions.appended)
        self.unique_keys = UniqueKeyFactory()
        self.wire = Wire()

    def close(self) -> None:
        self.held_pulls.stop()
        self.store.close()

    def join(self, group: str, *subscriptions: SubscriptionData, model: str = "CLUSTERING") -> None:
        """A member of `group` on `self.wire`, as its heartbeat would say."""
        data = ConsumerData(group_name=group, message_model=model, subscription_data_set=list(subscriptions))
        command = Command(code=34, version=OUR_VERSION)
        self.members.register_consumer(command, self.wire, "client-1", data, keeps_subscriptions=False)

    def send_message(self) -> SendMessage:
        return SendMessage(
            topics=self.topics,
            groups=self.groups,
            accepting=self.accepting,
            unique_keys=self.unique_keys,
            config=self.config,
            locks=self.locks,
            transactions=self.transactions,
        )

    def pull_message(self) -> PullMessage:
        return PullMessage(
            topics=self.topics,
            groups=self.groups,
            members=self.members,
            offsets=self.offsets,
            store=self.store,
            held_pulls=self.held_pulls,
            watch=self.watch,
            stats=self.stats,
            filters=self.filters,
            newer=NewerSubscriptions(self.members, MemberCalls(self.members), self.complaints),
            config=self.config,
            complaints=self.complaints,
        )

    def ask(self, processor: Processor, command: Command, wire: Wire | None = None) -> Command | None:
        """The answer as the request table would give it; an answer that came on the wire counts too."""
        wire = wire or self.wire
        sent_before = len(wire.sent)
        try:
            answer = processor(Request(command, wire))
            self.accepting.store_submitted()
            self.topics.file.flush()
            self.groups.file.flush()
        except WireError as error:
            return response(command, error.response_code, str(error))
        if answer is None and len(wire.sent) > sent_before:
            return wire.sent[-1]
        return answer
