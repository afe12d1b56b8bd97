"""Sends a message that must be consumed later back to the broker (Java `sendMessageBack`).

First by CONSUMER_SEND_MSG_BACK to the broker that stores it; if that fails for whatever reason, by sending a copy to
the group's retry topic on any broker. If both fail, the message stays in its process queue.
"""

from __future__ import annotations

import logging

from consumer.engine.brokers import Brokers
from consumer.engine.failure_policy import BROKER_DECIDES
from consumer.engine.process_queue import CachedMessage
from consumer.engine.subscriptions import original_topic
from remoting.client.errors import ClientError
from remoting.client.producer import Producer
from remoting.wire.errors import WireError
from remoting.wire.failures import FailureReason, remove_reason
from remoting.wire.headers.groups import SendMessageBackHeader
from remoting.wire.names import retry_topic
from remoting.wire.properties import Property

logger = logging.getLogger(__name__)

FIRST_RETRY_LEVEL = 3


class SendBack:
    """`fallback`: a producer that shares the consumer's connections."""

    def __init__(self, brokers: Brokers, fallback: Producer, group: str, max_reconsume_times: int) -> None:
        self._brokers = brokers
        self._fallback = fallback
        self._group = group
        self._max_reconsume_times = max_reconsume_times

    async def send(
        self, cached: CachedMessage, delay_level: int = BROKER_DECIDES, reason: FailureReason | None = None
    ) -> bool:
        """Returns True when a broker has stored it."""
        header = self._header(cached, delay_level, reason)
        try:
            await self._brokers.send_back(cached.process_queue.queue.broker_name, header)
        except (ClientError, WireError) as error:
            logger.warning(
                "group %s: %s cannot be sent back, trying the retry topic: %s", self._group, cached.stored, error
            )
            return await self.send_copy(cached, delay_level, reason)
        return True

    def _header(self, cached: CachedMessage, delay_level: int, reason: FailureReason | None) -> SendMessageBackHeader:
        header = SendMessageBackHeader(
            offset=cached.stored.commit_log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=cached.stored.message_id,
            origin_topic=original_topic(cached.stored),
            unit_mode=False,
            max_reconsume_times=self._max_reconsume_times,
            bname=cached.process_queue.queue.broker_name,
        )
        if reason is not None:
            header.failure_class, header.failure_text = reason.exception, reason.text or None
            header.failure_listener, header.failure_member = reason.listener or None, reason.member or None
            header.failure_attempt = reason.attempt
        return header

    async def send_copy(
        self, cached: CachedMessage, delay_level: int = BROKER_DECIDES, reason: FailureReason | None = None
    ) -> bool:
        """Sends a copy to the retry topic, with the properties of Java's; returns True when a broker has stored it.

        Reconsume times go in the header, as from Java's producer: above the maximum the copy is a dead letter. A level
        that the listener chose counts here, too, which Java leaves out.
        """
        stored = cached.stored
        properties = dict(stored.properties)
        properties.setdefault(Property.ORIGIN_MESSAGE_ID, stored.message_id)
        properties[Property.RETRY_TOPIC] = original_topic(stored)
        properties[Property.DELAY] = str(delay_level if delay_level > 0 else FIRST_RETRY_LEVEL + cached.reconsume_times)
        properties.pop(Property.TRAN_MSG, None)
        remove_reason(properties)
        if reason is not None:
            reason.write(properties)
        try:
            await self._fallback.forward(
                retry_topic(self._group),
                stored.body,
                properties,
                flag=stored.flag,
                sys_flag=stored.sys_flag,
                reconsume_times=cached.reconsume_times + 1,
                max_reconsume_times=0 if delay_level < 0 else self._max_reconsume_times,
            )
        except (ClientError, WireError) as error:
            logger.warning("group %s: %s stays here for now: %s", self._group, stored, error)
            return False
        return True
