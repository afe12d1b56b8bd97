"""LOCK_BATCH_MQ (41), UNLOCK_BATCH_MQ (42): the queues that a member of an ordered group consumes alone.

`onlyThisBroker` changes nothing: this broker has no replicas to ask.
"""

from __future__ import annotations

from broker.engine.groups.queue_locks import QueueLocks
from broker.engine.serving.requests import Request
from remoting.wire.bodies.queue_locks import read_lock_request, write_locked
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response


class LockBatchMQ:
    def __init__(self, locks: QueueLocks) -> None:
        self._locks = locks

    def __call__(self, request: Request) -> Command:
        """Raises BodyError."""
        wanted = read_lock_request(request.command.body)
        granted = self._locks.lock(wanted.consumer_group, wanted.queues, wanted.client_id)
        return response(request.command, ResponseCode.SUCCESS, body=write_locked(granted))


class UnlockBatchMQ:
    def __init__(self, locks: QueueLocks) -> None:
        self._locks = locks

    def __call__(self, request: Request) -> Command:
        """Raises BodyError."""
        held = read_lock_request(request.command.body)
        self._locks.unlock(held.consumer_group, held.queues, held.client_id)
        return response(request.command, ResponseCode.SUCCESS)
