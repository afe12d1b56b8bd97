"""A group's progress moved by tools: reset by time or to an offset, skipped to the end, copied, corrected.

How a broker resets depends on its version and on `useServerSideResetOffset`. Since 5.2 it does so itself, whether the
group is online or not, and tells members with their next pull. Before, it asks the online members to do so, and refuses
(CONSUMER_NOT_ONLINE) where there is none; `commit_by_time` is for these.
"""

from __future__ import annotations

from remoting.client.admin.offsets import Offsets
from remoting.client.admin.partial import ask_each
from remoting.client.admin.requests import Requests
from remoting.client.admin.topics import Topics
from remoting.client.commit_rounds import commit_rounds
from remoting.client.errors import NotSupported
from remoting.wire.bodies.consume_stats import read_corrections
from remoting.wire.bodies.message_queue import MessageQueue
from remoting.wire.bodies.progress import read_reset
from remoting.wire.bodies.properties import read_settings
from remoting.wire.codes import RequestCode
from remoting.wire.headers.offsets import CloneOffsetsHeader, CorrectionOffsetHeader, ResetOffsetHeader

# As a time: behind the last message.
END = -1
# Queues of one topic on one broker that `commit_by_time` moves, with two or three requests each.
QUEUES_MAX = 1024
# Of each of its two rounds.
COMMITS_TIMEOUT_MS = 60_000
_SERVER_SIDE = "useServerSideResetOffset"


class Resets:
    """Each call concerns one broker's queues. A group's retry topic is a topic of its own, and stays as it is."""

    def __init__(self, requests: Requests, offsets: Offsets, topics: Topics) -> None:
        self._requests = requests
        self._offsets = offsets
        self._topics = topics

    async def by_time(
        self, address: str, group: str, topic: str, timestamp_ms: int, *, also_forward: bool = True
    ) -> dict[MessageQueue, int]:
        """Moves the group on all queues of the topic to the first message at or after `timestamp_ms`, END to the end.

        Returns the new offsets (222); where members are asked to move, those that they were asked for. `also_forward`
        False moves no queue forward where members are asked; a broker that moves by itself ignores it.
        """
        if timestamp_ms < END:
            raise ValueError(f"{timestamp_ms} is no time: brokers differ in what they make of it")
        header = ResetOffsetHeader(topic=topic, group=group, timestamp=timestamp_ms, is_force=also_forward, offset=-1)
        return await self._reset(address, header)

    async def skip_accumulated(self, address: str, group: str, topic: str) -> dict[MessageQueue, int]:
        """Moves the group behind the last message of every queue; returns the new offsets (222)."""
        return await self.by_time(address, group, topic, END)

    async def queue_to(self, address: str, group: str, topic: str, queue_id: int, queue_offset: int) -> int:
        """Moves the group on one queue; returns the new offset (222).

        Raises NotSupported, before anything is changed, where the broker leaves resets to members: it would ignore
        queue and offset, and move every queue to its beginning. Raises BrokerRefused for an offset outside the queue.
        """
        await self._check_server_side(address)
        header = ResetOffsetHeader(
            topic=topic, group=group, timestamp=0, is_force=True, queue_id=queue_id, offset=queue_offset
        )
        moved = await self._reset(address, header)
        return next((offset for queue, offset in moved.items() if queue.queue_id == queue_id), queue_offset)

    async def commit_by_time(self, address: str, group: str, topic: str, timestamp_ms: int) -> dict[MessageQueue, int]:
        """Commits offsets for a group without online members, by time as `by_time`; returns them (202, 29 or 30, 15).

        Online members would overwrite them with their own. Raises the first error, after which some may be committed.
        """
        queues = sorted(await self._topics.stats(address, topic))[:QUEUES_MAX]

        async def move(queue: MessageQueue) -> int:
            if timestamp_ms == END:
                target = await self._offsets.max(address, topic, queue.queue_id)
            else:
                target = await self._offsets.search(address, topic, queue.queue_id, timestamp_ms)
            await self._offsets.commit(address, group, topic, queue.queue_id, target)
            return target

        moved: dict[MessageQueue, int] = {}
        for together in commit_rounds(queues):
            moved |= (await ask_each(together, move, timeout_ms=COMMITS_TIMEOUT_MS)).complete()
        return moved

    async def clone(
        self, address: str, source: str, destination: str, topic: str, *, although_not_subscribed: bool = False
    ) -> None:
        """Copies the progress of group `source` on the topic to `destination` (314).

        Without `although_not_subscribed` nothing is copied while the source's online members don't subscribe to it.
        """
        header = CloneOffsetsHeader(
            src_group=source, dest_group=destination, topic=topic, offline=although_not_subscribed
        )
        about = f"groups {source!r} and {destination!r} on topic {topic!r}"
        await self._requests.ask(address, RequestCode.CLONE_GROUP_OFFSET, header, about=about)

    async def corrections(
        self, address: str, group: str, topic: str, filtered_groups: list[str] | None = None
    ) -> dict[int, int]:
        """Returns by queue id how far all other groups of the topic have come where `group` is behind them (308).

        Apache's broker deletes the progress of `filtered_groups` on its way. Raises NotSupported with our broker.
        """
        filtered = ",".join(filtered_groups or ()) or None
        header = CorrectionOffsetHeader(compare_group=group, topic=topic, filter_groups=filtered)
        about = f"group {group!r} on topic {topic!r}"
        answer = await self._requests.ask(address, RequestCode.QUERY_CORRECTION_OFFSET, header, about=about)
        return read_corrections(answer.body)

    async def _reset(self, address: str, header: ResetOffsetHeader) -> dict[MessageQueue, int]:
        about = f"group {header.group!r} on topic {header.topic!r}"
        answer = await self._requests.ask(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, about=about)
        return read_reset(answer.body)

    async def _check_server_side(self, address: str) -> None:
        answer = await self._requests.ask(address, RequestCode.GET_BROKER_CONFIG)
        if read_settings(answer.body).get(_SERVER_SIDE) != "true":
            remark = f"{_SERVER_SIDE} is not true here, so one queue alone can't be reset"
            raise NotSupported(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, answer.version, remark)
