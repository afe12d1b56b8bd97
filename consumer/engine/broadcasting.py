"""What differs in a broadcasting group: every member gets every message, and none comes back."""

from __future__ import annotations

import logging

from consumer.engine.failure_policy import BROKER_DECIDES
from consumer.engine.process_queue import CachedMessage
from consumer.engine.send_back import SendBack
from remoting.wire.failures import FailureReason

logger = logging.getLogger(__name__)


class DropFailed(SendBack):
    """Drops a message instead of sending it back, as RocketMQ does: a retry would reach one member only."""

    def __init__(self, group: str) -> None:
        self._group = group

    async def send(
        self, cached: CachedMessage, delay_level: int = BROKER_DECIDES, reason: FailureReason | None = None
    ) -> bool:
        return await self.send_copy(cached, delay_level, reason)

    async def send_copy(
        self,
        cached: CachedMessage,
        delay_level: int = BROKER_DECIDES,  # noqa: ARG002
        reason: FailureReason | None = None,  # noqa: ARG002
    ) -> bool:
        logger.warning("group %s: broadcasting, %s failed and is dropped", self._group, cached.stored)
        return True
