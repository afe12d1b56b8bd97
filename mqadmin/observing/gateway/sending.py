"""Messages that the console sends: each once, to a queue that was chosen before, with exactly what became of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mqadmin.observing.gateway.failures import Failures
from mqadmin.observing.gateway.fan_out import fan_out
from remoting.client.admin import Admin
from remoting.client.admin.requests import Limits, Requests
from remoting.client.admin.sending import Sending, StoredAt
from remoting.client.connections import Connections
from remoting.client.errors import BrokerRefused, ConnectionLost, NotConnected, NoTurn, RequestTimedOut
from remoting.client.send_result import SendStatus
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.topics import PERM_WRITE
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import HeaderError, MessageError
from remoting.wire.stored_message import StoredMessage

# Under this name brokers and traces show the console's sends.
PRODUCER_GROUP = "MQADMIN_REPLAY"
# Of one broker: enough to hide the way there and back, and no more than one busy producer has.
IN_FLIGHT_PER_BROKER = 16
SEND_TIMEOUT_S = 5.0
# Nothing was stored, and it may be tried again.
_LATER = frozenset(
    {
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.FLOW_CONTROL,
        ResponseCode.GO_AWAY,
    }
)
# The broker cannot say whether it was stored.
_NOT_KNOWN = frozenset({ResponseCode.SYSTEM_ERROR})


class Fate(StrEnum):
    """What became of a send. LOST: no answer came, so it may be stored; NOT_SENT: it is not, and may be tried again."""

    STORED = "stored"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """`stored` where it is; `words` why it is not, or how safe it is there. `is_away`: the broker was not reached."""

    fate: Fate
    words: str = ""
    stored: StoredAt | None = None
    is_away: bool = False


class TargetQueue(NamedTuple):
    """A queue that takes messages."""

    address: str
    broker_name: str
    queue_id: int


class SendRequests:
    """Sends, and looks for what was sent."""

    def __init__(self, connections: Connections, admin: Admin, name_servers: Iterable[str]) -> None:
        limits = Limits(per_server=IN_FLIGHT_PER_BROKER)
        requests = Requests(connections, round(SEND_TIMEOUT_S * 1000), limits)
        self._sending = Sending(requests, PRODUCER_GROUP)
        self._admin = admin
        self._name_servers = tuple(name_servers)

    async def queues(self, topic: str, failures: Failures) -> list[TargetQueue]:
        """Returns the queues of a topic that take messages, as all name servers together say; none where it is not."""

        async def route(namesrv: str) -> list[TargetQueue]:
            try:
                found = await self._admin.cluster.route(namesrv, topic)
            except BrokerRefused as error:
                if error.code == ResponseCode.TOPIC_NOT_EXIST:
                    return []
                raise
            masters = {one.broker_name: one.master_addr for one in found.broker_datas}
            return [
                TargetQueue(address, queues.broker_name, queue_id)
                for queues in found.queue_datas
                if queues.perm & PERM_WRITE and (address := masters.get(queues.broker_name))
                for queue_id in range(queues.write_queue_nums)
            ]

        found = await fan_out(dict.fromkeys(self._name_servers, route), str, failures)
        return sorted({queue for queues in found.values() for queue in queues})

    async def send(self, queue: TargetQueue, topic: str, body: bytes, properties: Mapping[str, str]) -> SendOutcome:
        """Sends it once; what goes wrong is the outcome."""
        place = MessageQueue(topic, queue.broker_name, queue.queue_id)
        timeout_ms = round(SEND_TIMEOUT_S * 1000)
        try:
            stored = await self._sending.send(queue.address, place, body, properties, timeout_ms=timeout_ms)
        except MessageError as error:
            return SendOutcome(Fate.REFUSED, str(error))
        except BrokerRefused as error:
            return SendOutcome(_fate_of(error.code), str(error))
        except (ConnectionLost, RequestTimedOut, HeaderError) as error:
            return SendOutcome(Fate.LOST, str(error), is_away=not isinstance(error, HeaderError))
        except (NotConnected, NoTurn) as error:
            return SendOutcome(Fate.NOT_SENT, str(error), is_away=True)
        words = "" if stored.status == SendStatus.SEND_OK else stored.status.name
        return SendOutcome(Fate.STORED, words, stored)

    async def ends(self, queues: Collection[TargetQueue], topic: str, failures: Failures) -> dict[TargetQueue, int]:
        """Returns the queue offset one past the last message of each queue whose broker answers."""

        async def end(queue: TargetQueue) -> int:
            return await self._admin.offsets.max(queue.address, topic, queue.queue_id)

        return await fan_out(dict.fromkeys(queues, end), lambda queue: queue.address, failures)

    async def by_key(self, address: str, topics: Iterable[str], key: str, failures: Failures) -> list[StoredMessage]:
        """Returns the messages of the topics that have the key, as the broker's index finds them: also those of before
        a topic was deleted."""

        async def find(topic: str) -> list[StoredMessage]:
            try:
                return await self._admin.messages.by_key(address, topic, key, with_deleted=True)
            except BrokerRefused as error:
                if error.code == ResponseCode.TOPIC_NOT_EXIST:
                    return []
                raise

        found = await fan_out(dict.fromkeys(topics, find), lambda _: address, failures)
        return [message for messages in found.values() for message in messages]


def _fate_of(code: int) -> Fate:
    if code in _NOT_KNOWN:
        return Fate.LOST
    return Fate.NOT_SENT if code in _LATER else Fate.REFUSED
