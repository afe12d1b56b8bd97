"""CLONE_GROUP_OFFSET (314): a group begins where another one is (`AdminBrokerProcessor.cloneGroupOffset`).

Without a topic, all topics of the source count; Apache then copies nothing.
"""

from __future__ import annotations

from broker.engine.groups.members import Members
from broker.engine.groups.offsets import Offsets
from broker.engine.serving.requests import Request
from broker.engine.topics.topic_configs import Topics
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.offsets import CloneOffsetsHeader
from remoting.wire.headers.typed import read_header


class CloneGroupOffset:
    def __init__(self, topics: Topics, members: Members, offsets: Offsets) -> None:
        self._topics = topics
        self._members = members
        self._offsets = offsets

    def __call__(self, request: Request) -> Command:
        """Copies the offsets; leaves out topics that are gone, or that an online source isn't subscribed to."""
        header = read_header(CloneOffsetsHeader, request.command.ext_fields)
        for topic in [header.topic] if header.topic else self._offsets.topics_of(header.src_group):
            if self._topics.find(topic) is not None and (header.offline or self._reads(header.src_group, topic)):
                self._clone(header.src_group, header.dest_group, topic)
        return response(request.command, ResponseCode.SUCCESS)

    def _reads(self, group_name: str, topic: str) -> bool:
        group = self._members.find(group_name)
        return group is None or not group.subscriptions or topic in group.subscriptions

    def _clone(self, source: str, destination: str, topic: str) -> None:
        found = [
            (queue_id, at) for group, name, queue_id, at in self._offsets.items() if (group, name) == (source, topic)
        ]
        for queue_id, queue_offset in found:
            self._offsets.commit(destination, topic, queue_id, queue_offset)
