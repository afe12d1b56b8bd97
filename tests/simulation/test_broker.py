"""Random lives of a whole broker beside a plain model: clients, delays, retries, long polls, kills, a clock that jumps.

Virtual time, so that a life of hours takes milliseconds; the seed is printed on failure.

TORTURE=1 pytest tests/simulation/test_broker.py       more and longer lives
BROKER_SEED=4711 pytest tests/simulation/test_broker.py      that one again
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from remoting.wire.batch import encode_batch
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.headers.pull import SUBSCRIPTION_FLAG, SUSPEND_FLAG, PullMessageHeader
from remoting.wire.headers.send import SendMessageHeaderV2
from remoting.wire.headers.typed import write_header
from remoting.wire.names import dlq_topic, retry_topic
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.simulation.broker_model import Awaited, Entry, Held, Model, Place
from tests.support.simulated_broker import QuickFiles, SimulatedBroker, SimulatedClient
from tests.support.stores import SMALL

pytestmark = pytest.mark.simulation

TORTURE = bool(os.environ.get("TORTURE"))
LIVES = 20_000 if TORTURE else 1_000
LIVES_PER_TEST = 100
STEPS = 60
SEEDS = [int(os.environ["BROKER_SEED"])] if "BROKER_SEED" in os.environ else None

DELAYS_MS = (1_000, 5_000, 10_000, 30_000)
QUEUES = 3
TOPICS = ("orders", "bills")
GROUPS = ("billing", "mailing")
TAGS = (None, "a", "b")
RETRIES_MAX = 2
FIRST_RETRY_LEVEL = 3
SUSPEND_MS = 15_000
WATCHED = (*TOPICS, *map(retry_topic, GROUPS), *map(dlq_topic, GROUPS))


class Life:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.model = Model()
        self.number = 0
        self.broker = SimulatedBroker(
            folder, SMALL, QuickFiles(), delay_levels="1s 5s 10s 30s", default_queue_nums=QUEUES
        )
        self.clients: dict[str, SimulatedClient] = {}
        self.connect()
        self.prepare()

    def prepare(self) -> None:
        """Groups and topics are there from the beginning."""
        for group in GROUPS:
            self.heartbeat("two", group)
        for topic in TOPICS:
            self.broker.parts.topics.create_on_send(topic, "TBW102", QUEUES)
        self.clients["two"].hang_up()
        self.connect()

    def connect(self) -> None:
        self.clients = {name: self.broker.connect(name) for name in ("one", "two")}

    @property
    def client(self) -> SimulatedClient:
        return self.clients["one"]

    # sending

    def new_body(self) -> str:
        self.number += 1
        return f"message {self.number}"

    def any_place(self) -> Place:
        return self.chance.choice(TOPICS), self.chance.randrange(QUEUES)

    def send(self) -> None:
        self.send_one({})

    def send_delayed(self) -> None:
        self.send_one({Property.DELAY: str(self.chance.randrange(1, 6))})

    def send_one(self, properties: dict[str, str]) -> None:
        topic, queue_id = place = self.any_place()
        entry = Entry(self.new_body(), self.chance.choice(TAGS))
        if entry.tag is not None:
            properties[Property.TAGS] = entry.tag
        header = self.send_header(topic, queue_id, encode_properties(properties))
        answer = self.client.ask(RequestCode.SEND_MESSAGE_V2, entry.body.encode(), **write_header(header))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        level = int(properties.get(Property.DELAY, 0))
        if level:
            delay_ms = DELAYS_MS[min(level, len(DELAYS_MS)) - 1]
            self.model.awaited.append(Awaited(place, entry, self.broker.time.wall_ms() + delay_ms))
        else:
            assert answer.ext_fields["queueOffset"] == str(len(self.model.queues[place]))
            self.model.queues[place].append(entry)

    def send_header(self, topic: str, queue_id: int, properties: str, *, batch: bool = False) -> SendMessageHeaderV2:
        return SendMessageHeaderV2(
            producer_group="senders",
            topic=topic,
            default_topic_queue_nums=QUEUES,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=self.broker.time.wall_ms(),
            flag=0,
            properties=properties,
            batch=batch,
        )

    def send_batch(self) -> None:
        topic, queue_id = place = self.any_place()
        entries = [Entry(self.new_body(), self.chance.choice(TAGS)) for _ in range(self.chance.randrange(1, 6))]
        body = encode_batch(
            [(0, entry.body.encode(), {Property.TAGS: entry.tag} if entry.tag else {}) for entry in entries]
        )
        header = self.send_header(topic, queue_id, "", batch=True)
        answer = self.client.ask(RequestCode.SEND_BATCH_MESSAGE, body, **write_header(header))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        assert answer.ext_fields["queueOffset"] == str(len(self.model.queues[place]))
        self.model.queues[place] += entries

    # consuming

    def pull(self) -> None:
        self.pull_at(self.any_readable_place(), suspends=False)

    def pull_and_wait(self) -> None:
        """Sometimes beyond the end by none: then it waits."""
        self.pull_at(self.any_readable_place(), suspends=True)

    def any_readable_place(self) -> Place:
        if self.chance.random() < 0.7:
            return self.any_place()
        return self.chance.choice(WATCHED), 0

    def pull_at(self, place: Place, *, suspends: bool) -> None:
        end = len(self.model.queues[place])
        offset = end if suspends else self.chance.randrange(end + 1)
        tag = self.chance.choice(TAGS)
        name = self.chance.choice(list(self.clients))
        opaque = self.clients[name].send(
            RequestCode.PULL_MESSAGE, **write_header(self.pull_header(place, offset, tag, suspends=suspends))
        )
        answer = self.clients[name].answer(opaque)
        if answer is None:
            assert suspends
            deadline_s = self.broker.time.now_s + SUSPEND_MS / 1000
            self.model.held.append(Held(name, opaque, place, offset, tag, deadline_s))
        elif answer.code in (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.INVALID_PARAMETER):
            assert not end, answer.remark
        else:
            assert not suspends
            self.check_pulled(answer, place, offset, tag)

    def pull_header(self, place: Place, offset: int, tag: str | None, *, suspends: bool) -> PullMessageHeader:
        return PullMessageHeader(
            consumer_group="billing",
            topic=place[0],
            queue_id=place[1],
            queue_offset=offset,
            max_msg_nums=32,
            sys_flag=SUBSCRIPTION_FLAG | (SUSPEND_FLAG if suspends else 0),
            commit_offset=0,
            suspend_timeout_millis=SUSPEND_MS,
            subscription=tag or "*",
            sub_version=0,
        )

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

    def send_back(self) -> None:
        """A member of a group failed with some message of a topic or of the group's own retries."""
        group = self.chance.choice(GROUPS)
        places = [
            place
            for place, entries in self.model.queues.items()
            if entries and place[0] in (*TOPICS, retry_topic(group))
        ]
        if not places:
            return
        place = self.chance.choice(places)
        message = self.read(place, self.chance.randrange(len(self.model.queues[place])))[0]
        level = self.chance.choice([0, 0, 0, 1, -1])
        header = SendMessageBackHeader(
            offset=message.commit_log_offset, group=group, delay_level=level, max_reconsume_times=RETRIES_MAX
        )
        answer = self.client.ask(RequestCode.CONSUMER_SEND_MSG_BACK, **write_header(header))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        entry = Entry(message.body.decode(), message.tags, message.reconsume_times + 1)
        if message.reconsume_times >= RETRIES_MAX or level < 0:
            self.model.queues[dlq_topic(group), 0].append(entry)
            return
        delay_ms = DELAYS_MS[min(level or FIRST_RETRY_LEVEL + message.reconsume_times, len(DELAYS_MS)) - 1]
        due_ms = self.broker.time.wall_ms() + delay_ms
        self.model.awaited.append(Awaited((retry_topic(group), 0), entry, due_ms))

    def commit(self) -> None:
        group, (topic, queue_id) = self.chance.choice(GROUPS), self.any_place()
        offset = self.chance.randrange(len(self.model.queues[topic, queue_id]) + 1)
        answer = self.client.ask(
            RequestCode.UPDATE_CONSUMER_OFFSET,
            consumerGroup=group,
            topic=topic,
            queueId=queue_id,
            commitOffset=offset,
        )
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        self.model.commit(group, (topic, queue_id), offset, self.broker.time.now_s)

    # members

    def beat(self) -> None:
        name, group = self.chance.choice(list(self.clients)), self.chance.choice(GROUPS)
        self.heartbeat(name, group)
        self.model.members[group].add(name)

    def heartbeat(self, name: str, group: str) -> None:
        wanted = [SubscriptionData(topic=topic, sub_version=1) for topic in TOPICS]
        data = ConsumerData(group_name=group, message_model="CLUSTERING", subscription_data_set=wanted)
        heartbeat = HeartbeatData(client_id=name, consumer_data_set=[data])
        assert self.clients[name].ask(RequestCode.HEART_BEAT, write_body(heartbeat)).code == ResponseCode.SUCCESS

    def hang_up(self) -> None:
        name = self.chance.choice(list(self.clients))
        self.clients[name].hang_up()
        self.clients[name] = self.broker.connect(name)
        for members in self.model.members.values():
            members.discard(name)
        self.model.held = [held for held in self.model.held if held.client != name]

    def check_members(self) -> None:
        for group in GROUPS:
            answer = self.client.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)
            members = self.model.members[group]
            if not members:
                assert answer.code == ResponseCode.SYSTEM_ERROR
            else:
                assert all(f'"{name}"' in bytes(answer.body).decode() for name in members)

    # time and disaster

    def wait(self) -> None:
        self.broker.loop.pass_ms(self.chance.choice([1, 100, 1_000, 5_000, 12_000]))
        self.keep_members()

    def keep_members(self) -> None:
        """Heartbeats go on beside everything else: nobody here is silent for 120 s."""
        for group, names in self.model.members.items():
            for name in names:
                self.heartbeat(name, group)

    def jump_clock(self) -> None:
        self.broker.time.jump_ms += self.chance.choice([-20_000, -3_000, 3_000, 20_000])

    def restart(self) -> None:
        self.broker.stop()
        self.begin_again()
        for (group, place), commits in self.model.commits.items():
            if commits:
                assert self.committed(group, place) == commits[-1][1]

    def kill(self) -> None:
        now_s = self.broker.time.now_s
        self.broker.kill()
        self.broker.time.now_s += self.chance.choice([0, 0.5, 30])
        self.begin_again()
        for group, place in list(self.model.commits):
            allowed = self.model.after_kill(group, place, now_s)
            found = self.committed(group, place)
            assert found in allowed
            self.model.commits[group, place] = [] if found is None else [(now_s, found)]

    def begin_again(self) -> None:
        self.broker.start()
        self.connect()
        self.model.members.clear()
        self.model.held.clear()

    def committed(self, group: str, place: Place) -> int | None:
        return self.broker.parts.offsets.committed(group, *place)

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
                        self.model.appeared(place, entry_of(message), now_ms)
                assert known == self.broker.store.max_offset(*place)
        self.model.held = [held for held in self.model.held if not self.has_answer(held)]

    def has_answer(self, held: Held) -> bool:
        answer = self.clients[held.client].answer(held.opaque)
        matching = self.model.matching(held.place, held.offset, held.tag)
        if answer is None:
            assert not matching, f"{held} was not woken by {matching[0]}"
            assert self.broker.time.now_s < held.deadline_s, f"{held} was not answered in time"
            return False
        self.check_pulled(answer, held.place, held.offset, held.tag)
        return True

    # the life

    def live(self) -> None:
        operations: list[tuple[int, Callable[[], None]]] = [
            (20, self.send),
            (5, self.send_batch),
            (12, self.send_delayed),
            (12, self.pull),
            (8, self.pull_and_wait),
            (10, self.send_back),
            (8, self.commit),
            (4, self.beat),
            (2, self.hang_up),
            (3, self.check_members),
            (14, self.wait),
            (2, self.jump_clock),
            (1, self.restart),
            (3, self.kill),
        ]
        weights, calls = zip(*operations, strict=True)
        for _ in range(STEPS):
            self.chance.choices(calls, weights)[0]()
            self.look()
        self.end()

    def end(self) -> None:
        """All that was ever accepted is seen in the end."""
        self.kill()
        self.broker.loop.pass_ms(2 * DELAYS_MS[-1] + 90_000)
        self.look()
        assert not self.model.awaited
        assert self.broker.store.verify().is_sound
        self.broker.stop()


def entry_of(message: StoredMessage) -> Entry:
    return Entry(message.body.decode(), message.tags, message.reconsume_times)


@pytest.mark.parametrize("first", SEEDS or range(0, LIVES, LIVES_PER_TEST))
def test_a_broker_shows_what_a_plain_model_says(tmp_path: Path, first: int) -> None:
    for seed in [first] if SEEDS else range(first, first + LIVES_PER_TEST):
        life = Life(tmp_path / str(seed), seed)
        try:
            life.live()
        except Exception as error:
            error.add_note(f"BROKER_SEED={seed}")
            life.broker.kill()
            raise
