"""A broker's transactions on a real store, and producers that are asked; over kills."""

from __future__ import annotations

import asyncio

from broker.engine.groups.members import Client
from broker.engine.transactions.op_messages import GATHER_S
from remoting.wire.errors import MessageError
from tests.support.broker_parts import BrokerParts, Wire
from tests.support.stores import abandon, bodies, draft

TIMEOUT_MS = 6_000
INTERVAL_MS = 30_000
TIMES_MAX = 15
KEPT_MS = 72 * 3_600_000
OPS_WRITTEN_S = GATHER_S * 1.5


class _Requests:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def send_oneway(self, command) -> None:
        self._wire.sent.append(command)


class Broker:
    """Parts and the producers that are online; `restart` begins the next life on the same store."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.parts = BrokerParts(folder)
        self.clock = self.parts.clock
        self.count = 0
        self.transactions.recover()

    @property
    def transactions(self):
        return self.parts.transactions

    @property
    def store(self):
        return self.parts.store

    def online(self, group: str = "p") -> Wire:
        wire = Wire()
        wire.requester = _Requests(wire)
        self.parts.members._producers.setdefault(group, {})[wire] = Client(f"c{id(wire)}", wire, 0, 479, 0, 0, 0)
        return wire

    def send(self, body: bytes = b"one", queue_id: int = 0, **properties: str):
        """The half message as it was stored."""
        self.count += 1
        message = draft(body, "orders", queue_id, born_timestamp_ms=self.clock())
        found: list = []
        values = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": f"u{self.count}", "TAGS": "paid", **properties}
        answer = self.transactions.begin(message, values, found.append)
        self.parts.accepting.submit(message, values, waits=True, answer=answer)
        self.parts.accepting.store_submitted()
        return self.store.message_at(found[0][0].commit_log_offset)

    def end(self, half, is_commit: bool) -> MessageError | None:
        """Why not, or None. Raises LookupError when it has ended before."""
        version = self.transactions.undecided_version(half)
        if version is None:
            raise LookupError
        found: list = []
        (self.transactions.commit if is_commit else self.transactions.roll_back)(version, found.append)
        self.parts.accepting.store_submitted()
        return found[0]

    def commit(self, half):
        return self.end(half, True)

    def roll_back(self, half):
        return self.end(half, False)

    def check(self, after_ms: int = 0) -> int:
        self.clock.now_ms += after_ms
        return self.transactions.checks.carry_out("0", self.clock()).count

    def delivered(self) -> list[bytes]:
        return bodies(self.store)

    def restart(self, *, is_kill: bool) -> None:
        self.transactions._ops.stop()
        if is_kill:
            abandon(self.store)
        else:
            self.store.close()
        clock = self.clock
        self.parts = BrokerParts(self.folder, clock=clock)
        self.parts.offsets.load()
        self.transactions.recover()

    async def tidied(self) -> None:
        """As after two rounds of the loop, offsets saved."""
        await asyncio.sleep(OPS_WRITTEN_S)
        await self.transactions.tidy()
        await self.transactions.tidy()
        await self.parts.offsets.save()

    def close(self) -> None:
        self.transactions._ops.stop()
        self.parts.close()
