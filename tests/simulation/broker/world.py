"""The machine that lives: one broker, two clients, a clock, and a model of what must be seen."""

from __future__ import annotations

import random
from pathlib import Path

from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.names import dlq_topic, retry_topic
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.simulation.broker.model import Awaited, Entry, Held, Model, Place
from tests.support.simulated_broker import QuickFiles, SimulatedBroker, SimulatedClient
from tests.support.stores import SMALL

DELAYS_MS = (1_000, 5_000, 10_000, 30_000)
QUEUES = 3
TOPICS = ("orders", "bills")
GROUPS = ("billing", "mailing")
SENDERS = "senders"
TAGS = (None, "a", "b")
WATCHED = (*TOPICS, *map(retry_topic, GROUPS), *map(dlq_topic, GROUPS))


class World:
    """Whoever sends tells the model what is accepted; `look` compares."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = Model()
        self._number = 0
        # How long each delay level waits now.
        self.delays_ms = DELAYS_MS
        self.broker = SimulatedBroker(
            folder, SMALL, QuickFiles(), delay_levels="1s 5s 10s 30s", default_queue_nums=QUEUES
        )
        self.clients: dict[str, SimulatedClient] = {}
        self.connect()
        self._prepare()

    def _prepare(self) -> None:
        """Groups and topics are there from the beginning."""
        for group in GROUPS:
            self.beat("two", group)
        for topic in TOPICS:
            self.broker.broker.topics.create_on_send(topic, "TBW102", QUEUES)
        self.clients["two"].hang_up()
        self.connect()

    def connect(self) -> None:
        self.clients = {}
        for name in ("one", "two"):
            self.connect_client(name)

    def connect_client(self, name: str) -> None:
        """Every client is a producer too."""
        self.clients[name] = self.broker.connect(name)
        self._beat(name, HeartbeatData(client_id=name, producer_data_set=[ProducerData(group_name=SENDERS)]))

    def beat(self, name: str, group: str) -> None:
        wanted = [SubscriptionData(topic=topic, sub_version=1) for topic in TOPICS]
        data = ConsumerData(group_name=group, message_model="CLUSTERING", subscription_data_set=wanted)
        producers = [ProducerData(group_name=SENDERS)]
        self._beat(name, HeartbeatData(client_id=name, consumer_data_set=[data], producer_data_set=producers))

    def _beat(self, name: str, heartbeat: HeartbeatData) -> None:
        answer = self.clients[name].ask(RequestCode.HEART_BEAT, write_body(heartbeat))
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    # chances

    @property
    def client(self) -> SimulatedClient:
        return self.clients["one"]

    def any_client(self) -> str:
        return self.chance.choice(list(self.clients))

    def any_place(self) -> Place:
        return self.chance.choice(TOPICS), self.chance.randrange(QUEUES)

    def new_entry(self) -> Entry:
        self._number += 1
        return Entry(f"message {self._number}", self.chance.choice(TAGS))

    # time

    def wait(self, by_ms: int) -> None:
        """Heartbeats go on meanwhile: nobody here is silent for 120 s."""
        self.broker.loop.pass_ms(by_ms)
        for name in self.clients:
            self._beat(name, HeartbeatData(client_id=name, producer_data_set=[ProducerData(group_name=SENDERS)]))
        for group, names in self.model.members.items():
            for name in names:
                self.beat(name, group)

    def begin_again(self) -> None:
        self.broker.start()
        self.model.process_ended()
        self.connect()

    def awaits(self, place: Place, entry: Entry, delay_ms: int) -> None:
        """It was accepted now, to come after so long."""
        time = self.broker.time
        self.model.awaited.append(Awaited(place, entry, time.wall_ms() + delay_ms, time.now_s + delay_ms / 1000))

    # looking

    def read(self, place: Place, offset: int) -> list[StoredMessage]:
        return decode_messages(self.broker.store.read(*place, offset, 32, 1 << 20).body)

    def look(self) -> None:
        """Everything that is to be seen now is what the model says, and who waited for it has it."""
        now_ms = self.broker.time.wall_ms()
        for topic in WATCHED:
            for queue_id in range(QUEUES):
                place = topic, queue_id
                while (known := len(self.model.queues[place])) < self.broker.store.max_offset(*place):
                    for message in self.read(place, known):
                        self.model.appeared(place, entry_of(message), now_ms, self.broker.time.now_s)
                assert known == self.broker.store.max_offset(*place)
        self.model.held = [held for held in self.model.held if not self._has_answer(held)]

    def _has_answer(self, held: Held) -> bool:
        answer = self.clients[held.client].answer(held.opaque)
        matching = self.model.matching(held.place, held.offset, held.tag)
        if answer is None:
            assert not matching, f"{held} was not woken by {matching[0]}"
            assert self.broker.time.now_s < held.deadline_s, f"{held} was not answered in time"
            return False
        self.check_pulled(answer, held.place, held.offset, held.tag)
        return True

    def check_pulled(self, answer: Command, place: Place, offset: int, tag: str | None) -> None:
        """As of the moment of the answer, which says where the queue ended then."""
        end = int(answer.ext_fields["maxOffset"])
        assert end <= len(self.model.queues[place])
        expected = [one for one in self.model.matching(place, offset, tag) if one[0] < end]
        found = decode_messages(answer.body)
        assert [(message.queue_offset, entry_of(message)) for message in found] == expected[: len(found)]
        if found:
            assert answer.code == ResponseCode.SUCCESS
        elif offset == end:
            assert answer.code == ResponseCode.PULL_NOT_FOUND
        else:
            assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
            # A scan ends with a file of the consume queue: what matches may lie in the next one.
            assert all(position >= int(answer.ext_fields["nextBeginOffset"]) for position, _ in expected)


def entry_of(message: StoredMessage) -> Entry:
    return Entry(message.body.decode(), message.tags, message.reconsume_times)
