"""What a broker itself says, asked from outside over a plain socket: members, assignments, offsets, messages."""

from __future__ import annotations

import time

from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.watch import AssignmentState, GroupState, WatchBody
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from remoting.wire.headers.typed import read_header
from remoting.wire.headers.watch import WatchResponseHeader
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage
from tests.support.asking import ask, ask_pages
from tests.support.reading import all_messages


class BrokerProbe:
    """`address` is "host:port" of one of our brokers, which knows the watch request."""

    def __init__(self, address: str) -> None:
        self.address = address

    def watch(self) -> WatchBody:
        """Everything at this moment. Raises OSError while the broker is away."""
        answers = ask_pages(self.address, Command(code=RequestCode.WATCH), _next_page)
        body, *pages = (read_body(WatchBody, answer.body) for answer in answers)
        for page in pages:
            body.add(page)
        return body

    def group(self, name: str) -> GroupState | None:
        return next((group for group in self.watch().groups if group.config.group_name == name), None)

    def members(self, group: str) -> set[str]:
        """Client ids."""
        state = self.group(group)
        return {member.client_id for member in state.members} if state is not None else set()

    def pulled_by(self, group: str, topic: str, since_ms: int = 0) -> dict[int, str]:
        """Queue id → client id of whoever pulled it last, where that was after `since_ms` (epoch)."""
        state = self.group(group)
        assignments = state.assignments if state is not None else []
        return {item.queue_id: item.client_id for item in assignments if _is_of(item, topic, since_ms)}

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Queue id → committed offset."""
        mine = [item for item in self.watch().committed if (item.group, item.topic) == (group, topic)]
        return {item.queue_id: item.committed_offset for item in mine}

    def progress(self, group: str, topic: str) -> dict[int, tuple[int, int]]:
        """Queue id → committed offset, and one past the last message, of the same moment."""
        told = self.watch()
        ends = {queue.queue_id: queue.max_offset for queue in told.queues if queue.topic == topic}
        mine = [item for item in told.committed if (item.group, item.topic) == (group, topic)]
        return {item.queue_id: (item.committed_offset, ends[item.queue_id]) for item in mine}

    def max_offsets(self, topic: str) -> dict[int, int]:
        """Queue id → one past the last message."""
        return {queue.queue_id: queue.max_offset for queue in self.watch().queues if queue.topic == topic}

    @property
    def driver(self) -> str:
        """Who drives the scheduler, as host/pid; "" for nobody."""
        scheduler = self.watch().scheduler
        return scheduler.driver if scheduler is not None else ""

    def send(self, topic: str, body: bytes, *, tags: str = "", delay_level: int = 0) -> float:
        """When it was sent, in s since the epoch."""
        named = {"TAGS": tags, "DELAY": str(delay_level) if delay_level else ""}
        properties = encode_properties({name: value for name, value in named.items() if value})
        values = dict(zip("abcdefghi", ("probe", topic, "TBW102", "1", "0", "0", "0", "0", properties), strict=True))
        sent_s = time.time()
        answer = ask(self.address, Command(code=RequestCode.SEND_MESSAGE_V2, ext_fields=values, body=body))
        # Where the disk is slow to flush, the answer says so, and the message is stored all the same.
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT), answer
        return sent_s

    def messages(self, topic: str, queue_id: int = 0) -> list[StoredMessage]:
        """All of a queue, from its first on."""
        return all_messages(self.address, topic, queue_id)


def _is_of(item: AssignmentState, topic: str, since_ms: int) -> bool:
    return item.topic == topic and item.last_pull_ms >= since_ms


def _next_page(answer: Command) -> Command | None:
    """The request for the page after `answer`'s: a busy broker tells a snapshot in several."""
    header = read_header(WatchResponseHeader, answer.ext_fields)
    return Command(code=RequestCode.WATCH, ext_fields={"page": str(header.next_page)}) if header.next_page else None
