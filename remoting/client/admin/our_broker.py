"""Requests that only this project's broker answers (docs/PRIVATE-REQUESTS.md)."""

from __future__ import annotations

from remoting.client.admin.requests import Requests
from remoting.client.errors import BrokerRefused, NotSupported
from remoting.wire.bodies.document import read_body
from remoting.wire.bodies.scheduler import Agenda
from remoting.wire.bodies.watch import WatchBody
from remoting.wire.codes import RequestCode
from remoting.wire.command import Command
from remoting.wire.errors import BodyError
from remoting.wire.headers.scheduler import (
    SchedulerLeaseHeader,
    SchedulerLeaseResponseHeader,
    SchedulerStepHeader,
    SchedulerStepResponseHeader,
)
from remoting.wire.headers.typed import read_header
from remoting.wire.headers.watch import WatchHeader, WatchResponseHeader

# What is read of one watch's pages: about 150,000 groups of 8 queues.
WATCH_BYTES_MAX = 256 * 1024 * 1024


class OurBroker:
    """Every call but `is_at` raises NotSupported with Apache's brokers. None takes a turn: a caller has one at once."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def watch(
        self, address: str, boot: str = "", since: int = 0, wait_ms: int = 0
    ) -> tuple[WatchResponseHeader, WatchBody]:
        """Returns what changed since revision `since`, all pages; waits up to `wait_ms` for a change.

        Raises BodyError beyond WATCH_BYTES_MAX.
        """
        answer = await self._watch(address, WatchHeader(boot=boot, since=since, wait_ms=wait_ms))
        first, body = _read_watch(answer)
        next_page, size_bytes = first.next_page, len(answer.body)
        while next_page:
            answer = await self._watch(address, WatchHeader(boot=boot, since=since, page=next_page))
            size_bytes += len(answer.body)
            if size_bytes > WATCH_BYTES_MAX:
                raise BodyError(f"{address}: the watch's answer has more than {WATCH_BYTES_MAX} bytes")
            further, part = _read_watch(answer)
            body.add(part)
            next_page = further.next_page
        return first, body

    async def is_at(self, address: str) -> bool:
        """Returns whether the server is a broker of this project: it knows the watch request, if not its page -1."""
        try:
            await self._watch(address, WatchHeader(page=-1))
        except NotSupported:
            return False
        except BrokerRefused:
            return True
        return True

    async def watch_page(self, address: str, header: WatchHeader) -> tuple[WatchResponseHeader, WatchBody]:
        """Returns one page of a watch's answer."""
        return _read_watch(await self._watch(address, header))

    async def scheduler_lease(
        self, address: str, driver: str, lease_ms: int, *, epoch: int = 0, wait_ms: int = 0
    ) -> tuple[SchedulerLeaseResponseHeader, Agenda]:
        """Asks for the scheduler's lease, or renews it; returns who holds it and what is waiting."""
        header = SchedulerLeaseHeader(driver=driver, epoch=epoch, lease_ms=lease_ms, wait_ms=wait_ms)
        answer = await self._requests.ask_parked(address, RequestCode.SCHEDULER_LEASE, header, wait_ms)
        agenda = read_body(Agenda, answer.body) if answer.body else Agenda()
        return read_header(SchedulerLeaseResponseHeader, answer.ext_fields), agenda

    async def scheduler_step(
        self, address: str, epoch: int, kind: str, key: str, until_ms: int
    ) -> SchedulerStepResponseHeader:
        """Makes the broker carry out what is due.

        Raises BrokerRefused with SCHEDULER_EPOCH_STALE when another holds the lease.
        """
        header = SchedulerStepHeader(epoch=epoch, kind=kind, key=key, until_ms=until_ms)
        code = RequestCode.SCHEDULER_STEP
        answer = await self._requests.ask_parked(address, code, header, 0, about=f"{kind} {key}")
        return read_header(SchedulerStepResponseHeader, answer.ext_fields)

    async def _watch(self, address: str, header: WatchHeader) -> Command:
        return await self._requests.ask_parked(address, RequestCode.WATCH, header, header.wait_ms)


def _read_watch(answer: Command) -> tuple[WatchResponseHeader, WatchBody]:
    return read_header(WatchResponseHeader, answer.ext_fields), read_body(WatchBody, answer.body)
