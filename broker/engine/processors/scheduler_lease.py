"""SCHEDULER_LEASE (29011): the lease of the scheduler's driver, and the agenda that it works through.

The lease belongs to the connection that asked for it: when that closes, a standby takes over at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.engine.schedule.driver import LeaseAnswer
from broker.engine.schedule.scheduler import Answer, LeaseRequest, Scheduler
from broker.engine.serving.requests import Request
from remoting.connection import Connection
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.scheduler import Agenda
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.headers.scheduler import SchedulerLeaseHeader, SchedulerLeaseResponseHeader
from remoting.wire.headers.typed import read_header, write_header


@dataclass(slots=True)
class _Driver:
    """What a connection's driver holds: the epoch of its lease, 0 for none, and the request it waits with."""

    epoch: int = 0
    waits_with: Answer | None = None


class SchedulerLease:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._drivers: dict[Connection, _Driver] = {}

    def __call__(self, request: Request) -> None:
        """Returns None: the answer is sent at once, or when something is due."""
        command, connection = request.command, request.connection
        header = read_header(SchedulerLeaseHeader, command.ext_fields)
        driver = self._drivers.setdefault(connection, _Driver())

        def answer(lease: LeaseAnswer) -> None:
            driver.epoch = lease.epoch if lease.granted else 0
            connection.send(_response(command, lease))

        driver.waits_with = answer
        self._scheduler.ask(LeaseRequest(header.driver, header.epoch, header.lease_ms, header.wait_ms), answer)

    def connection_lost(self, connection: Connection) -> None:
        """Gives the connection's lease back."""
        driver = self._drivers.pop(connection, None)
        if driver is not None and driver.waits_with is not None:
            self._scheduler.forget(driver.waits_with)
            self._scheduler.release(driver.epoch)


def _response(command: Command, lease: LeaseAnswer) -> Command:
    header = SchedulerLeaseResponseHeader(
        granted=lease.granted, epoch=lease.epoch, holder=lease.holder, broker_now_ms=lease.broker_now_ms
    )
    body = write_body(Agenda(entries=list(lease.agenda)))
    return response(command, ResponseCode.SUCCESS, ext_fields=write_header(header), body=body)
