"""Our broker driven by Celery workers, seen and used over raw requests."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from remoting.wire.bodies.watch import SchedulerState
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.frames import FrameReader, encode_frame
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage, decode_messages
from tests.support.asking import ask
from tests.support.broker_probe import BrokerProbe
from tests.support.celery_worker import CeleryWorker
from tests.support.our_broker import OurBroker
from tests.support.reading import pull
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until

TOPIC = "late"


class Cluster:
    """Our broker driven by Celery, and the Redis of the workers."""

    def __init__(self, folder: Path, broker: OurBroker, redis: RedisServer) -> None:
        self.folder = folder
        self.broker = broker
        self.redis = redis

    def worker(self, name: str) -> CeleryWorker:
        data = self.folder / "data"
        env = {"REDIS_URL": self.redis.url, "MQADMIN_NAMESRV": self.broker.namesrv, "MQADMIN_DATA": str(data)}
        return CeleryWorker(name, "scheduler", self.folder, env)

    # the scheduler

    @property
    def state(self) -> SchedulerState:
        body = BrokerProbe(self.broker.broker).watch()
        return body.scheduler or SchedulerState()

    @property
    def driver(self) -> str:
        """Who holds the lease, as the watch request tells; "" for nobody."""
        return self.state.driver

    def step(self, epoch: int, kind: str, key: str) -> Command:
        fields = {"epoch": str(epoch), "kind": kind, "key": key, "untilMs": str(time.time_ns() // 1_000_000)}
        return ask(self.broker.broker, Command(code=RequestCode.SCHEDULER_STEP, ext_fields=fields))

    def change_setting(self, name: str, value: str) -> None:
        body = f"{name}={value}\n".encode()
        answer = ask(self.broker.broker, Command(code=RequestCode.UPDATE_BROKER_CONFIG, body=body))
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    # messages

    def send(self, body: bytes, topic: str = TOPIC, **properties: str) -> float:
        """To queue 0 of `topic`; when it was sent, in s since the epoch."""
        text = encode_properties(properties)
        sent_s = time.time()
        flag = "4" if properties.get("TRAN_MSG") == "true" else "0"
        fields = ("p", topic, "TBW102", "1", "0", flag, str(int(sent_s * 1000)), "0", text)
        values = dict(zip("abcdefghi", fields, strict=True))
        answer = ask(self.broker.broker, Command(code=RequestCode.SEND_MESSAGE_V2, ext_fields=values, body=body))
        assert answer.code == ResponseCode.SUCCESS, answer
        return sent_s

    def send_delayed(self, body: bytes) -> float:
        """Level 1."""
        return self.send(body, DELAY="1")

    def pull(self, topic: str = TOPIC, queue_offset: int = 0) -> Command:
        """As group "g"."""
        return pull(self.broker.broker, topic, queue_offset, group="g")

    def delivered(self) -> list[StoredMessage]:
        answer = self.pull()
        return decode_messages(answer.body) if answer.code == ResponseCode.SUCCESS else []

    def bodies(self) -> list[bytes]:
        return [message.body for message in self.delivered()]

    def wait_for(self, count: int) -> list[StoredMessage]:
        return wait_until(lambda: (found := self.delivered()) and len(found) >= count and found)


class TransactionProducer:
    """A member of producer group "p" that counts how often it is asked about a transaction."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), 60)
        self._socket.setblocking(False)
        self._reader = FrameReader()
        self._asked = 0
        beat = {"clientID": "p-1", "producerDataSet": [{"groupName": "p"}], "consumerDataSet": []}
        self._socket.sendall(encode_frame(Command(code=RequestCode.HEART_BEAT, body=msgspec.json.encode(beat))))

    @property
    def asked_count(self) -> int:
        try:
            while data := self._socket.recv(65536):
                commands = self._reader.feed(data)
                self._asked += sum(command.code == RequestCode.CHECK_TRANSACTION_STATE for command in commands)
        except BlockingIOError:
            pass
        return self._asked

    def close(self) -> None:
        self._socket.close()


@contextmanager
def running_cluster(folder: Path, *arguments: str) -> Iterator[Cluster]:
    with (
        RedisServer(folder) as redis,
        OurBroker(folder / "store", "async", arguments=("--scheduler=celery", *arguments), patient=True) as broker,
    ):
        yield Cluster(folder, broker, redis)


def pid_of(driver: str) -> int:
    return int(driver.rpartition("/")[2])


def processes_of(worker: CeleryWorker) -> list[psutil.Process]:
    """The worker's main process first."""
    main = psutil.Process(worker.pid)
    return [main, *main.children(recursive=True)]
