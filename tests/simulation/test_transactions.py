"""Random lives of transactions beside a dict: sends, ends, lost answers, checks, kills, power cuts, clocks that jump.

The disk is the test's: nothing is flushed but by its word, and a power cut keeps any of what was not. A producer that
has decided never changes its mind; what it says may be lost, and it says it again when it is asked.

TORTURE=1 pytest tests/simulation/test_transactions.py                more and longer lives
TRANSACTIONS_SEED=4711 pytest tests/simulation/test_transactions.py    that one again
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from broker.engine.config import BrokerConfig
from broker.engine.groups.members import Client, Members
from broker.engine.groups.offsets import Offsets
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.sending.accepting import Accepting
from broker.engine.stats import BrokerStats
from broker.engine.store.flusher import Flusher
from broker.engine.store.message_store import MessageStore
from broker.engine.transactions import transactions as transactions_module
from broker.engine.transactions.progress import ProgressKeeper
from broker.engine.transactions.transactions import Transactions
from broker.engine.watch.watch import Watch
from remoting.complaints import ComplaintLog
from remoting.wire.names import CHECK_MAX_TIME_TOPIC
from remoting.wire.stored_message import StoredMessage, decode_message
from tests.support.broker_parts import Wire
from tests.support.delay_levels import DEFAULT_LEVELS
from tests.support.faulty_files import PowerCutFiles
from tests.support.stores import SMALL, ManualClock, abandon, bodies, draft
from tests.support.virtual_time import VirtualLoop, VirtualTime

pytestmark = pytest.mark.simulation

TORTURE = bool(os.environ.get("TORTURE"))
LIVES = 20_000 if TORTURE else 100
LIVES_PER_TEST = 25
STEPS = 200 if TORTURE else 60
SEEDS = [int(os.environ["TRANSACTIONS_SEED"])] if "TRANSACTIONS_SEED" in os.environ else None

CONFIG = replace(SMALL, flush="sync")
TOPIC = "orders"
TIMEOUT_MS, INTERVAL_MS = 6_000, 30_000
ROUNDS_MAX = 200
DAY_MS = 86_400_000


@dataclass
class Transaction:
    """What its producer knows. `is_safe`: the half was acknowledged; `end_is_safe`: its end was."""

    is_committed: bool | None = None
    is_safe: bool = False
    end_is_safe: bool = False
    half: StoredMessage | None = None


class Disk:
    """Has the flusher flush when the test says so, on the test's own thread, and calls back who waited for it.

    The flusher's thread must not run (`_no_thread`).
    """

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._waiting: list[tuple[int, Callable[[Exception | None], None]]] = []
        store.when_flushed = self._when_flushed  # type: ignore[method-assign]

    def _when_flushed(self, end: int, callback: Callable[[Exception | None], None]) -> None:
        self._waiting.append((end, callback))

    def flush(self) -> None:
        self._store._flusher._round()
        flushed = self._store.flushed_commit_log_offset
        ready = [callback for end, callback in self._waiting if end <= flushed]
        self._waiting = [entry for entry in self._waiting if entry[0] > flushed]
        for callback in ready:
            callback(None)


class Life:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock()
        self.folder = folder
        self.generation = 0
        self.known: dict[bytes, Transaction] = {}
        self.wire = Wire()
        self.wire.requester = self  # type: ignore[attr-defined]
        self.asked: list[tuple[bytes, int]] = []
        self.start()

    # the machine

    @property
    def path(self) -> Path:
        return self.folder / f"store-{self.generation}"

    @property
    def shadow(self) -> Path:
        return self.folder / f"disk-{self.generation}"

    def start(self) -> None:
        self.files = PowerCutFiles(self.path, self.shadow)
        self.store = MessageStore.open(self.path, CONFIG, self.clock, self.files)
        self.disk = Disk(self.store)
        watch = Watch(self.clock)
        self.offsets = Offsets(self.path / "config", watch.committed, ComplaintLog())
        self.offsets.load()
        self.offsets.clamp_to_queue_ends(self.store.max_offset)
        settings = BrokerConfig(
            store=self.path, port=10_911, transaction_check_max=10_000, file_reserved_hours=1_000_000
        )
        self.accepting = Accepting(
            self.store,
            LevelHistory(self.path / "config", DEFAULT_LEVELS),
            self.clock,
            settings,
            BrokerStats(self.clock),
            ComplaintLog(),
        )
        members = Members(self.clock, watch, lambda _: False, ComplaintLog(), self.clock)
        members._producers["p"] = {self.wire: Client("c", self.wire, 0, 479, 0, 0, 0)}  # type: ignore[dict-item]
        self.transactions = Transactions(
            self.store,
            self.accepting,
            members,
            ProgressKeeper(self.path / "config", self.offsets),
            settings,
            ComplaintLog(),
            before_giving_up=lambda: None,
            on_earlier_due=lambda: None,
            clock=self.clock,
        )
        self.store.add_append_listeners(self.transactions.appended)
        self.transactions.recover()

    def kill(self) -> None:
        self.transactions._ops.stop()
        abandon(self.store)
        self.start()

    async def stop(self) -> None:
        self.transactions._ops.write()
        self.disk.flush()
        self.transactions._ops.stop()
        self.transactions._write_progress(self.transactions._progress())
        await self.save_offsets()
        self.store.close()
        self.start()

    def cut_power(self) -> None:
        self.transactions._ops.stop()
        abandon(self.store)
        old, files = self.path, self.files
        self.generation += 1
        files.cut(self.path, self.chance)
        for gone in (old, self.folder / f"disk-{self.generation - 1}"):
            shutil.rmtree(gone, ignore_errors=True)
        # What came back is what is on the disk.
        shutil.copytree(self.path, self.shadow)
        self.start()

    async def save_offsets(self) -> None:
        """Flushed as a whole, which the file layer of the store does not see."""
        await self.offsets.save()
        for name in ("consumerOffset.json", "consumerOffset.json.bak"):
            saved = self.path / "config" / name
            if saved.exists():
                (self.shadow / "config").mkdir(parents=True, exist_ok=True)
                shutil.copyfile(saved, self.shadow / "config" / name)

    # what happens

    async def step(self) -> None:
        action = self.chance.choices(
            [self.send, self.decide, self.say, self.flush, self.write_ops, self.check, self.tidy, self.noise],
            [6, 6, 8, 8, 2, 4, 2, 1],
        )[0]
        outcome = action()
        if outcome is not None:
            await outcome
        fate = self.chance.random()
        if fate < 0.02:
            self.kill()
        elif fate < 0.04:
            self.cut_power()
        elif fate < 0.05:
            await self.stop()
        elif fate < 0.06:
            self.clock.now_ms += self.chance.choice([-DAY_MS, -5_000, 5_000, DAY_MS])

    def send(self) -> None:
        body = b"%d" % len(self.known)
        transaction = self.known[body] = Transaction()
        values = {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": f"u{body.decode()}"}
        if self.chance.random() < 0.1:
            values["CHECK_IMMUNITY_TIME_IN_SECONDS"] = "60"
        message = draft(body, TOPIC, self.chance.randrange(2), born_timestamp_ms=self.clock())
        store = self.store

        def answered(result) -> None:
            transaction.is_safe = True
            transaction.half = store.message_at(result[0].commit_log_offset)

        answer = self.transactions.begin(message, values, answered)
        self.accepting.submit(message, values, waits=True, answer=answer)
        self.accepting.store_submitted()

    def decide(self) -> None:
        """Its database commits, or does not."""
        open_ones = [one for one in self.known.values() if one.is_committed is None and one.is_safe]
        if open_ones:
            self.chance.choice(open_ones).is_committed = self.chance.random() < 0.6

    def say(self) -> None:
        """It says so, again too, naming the half that it sent."""
        told = [one for one in self.known.values() if one.is_committed is not None and one.half is not None]
        if told:
            transaction = self.chance.choice(told)
            assert transaction.half is not None
            self.end(transaction, transaction.half.commit_log_offset)

    def end(self, transaction: Transaction, commit_log_offset: int) -> None:
        """As `EndTransaction` does it."""
        half = self.store.message_at(commit_log_offset)
        if half is None or half.body not in self.known or self.known[half.body] is not transaction:
            return
        version = self.transactions.undecided_version(half)
        if version is None:
            return

        def ended(error) -> None:
            transaction.end_is_safe = transaction.end_is_safe or error is None

        (self.transactions.commit if transaction.is_committed else self.transactions.roll_back)(version, ended)
        self.accepting.store_submitted()

    def flush(self) -> None:
        self.disk.flush()

    def write_ops(self) -> None:
        self.transactions._ops.write()

    def check(self) -> None:
        self.clock.now_ms += self.chance.choice([0, 1_000, TIMEOUT_MS, INTERVAL_MS])
        self.asked.clear()
        self.transactions.checks.carry_out("0", self.clock())
        for body, commit_log_offset in self.asked:
            transaction = self.known[body]
            if transaction.is_committed is not None and self.chance.random() < 0.5:
                self.end(transaction, commit_log_offset)

    def send_oneway(self, command) -> None:
        """A check reaches the producer."""
        message = decode_message(command.body)
        assert message.topic == TOPIC
        self.asked.append((message.body, int(command.ext_fields["commitLogOffset"])))

    async def tidy(self) -> None:
        await self.transactions.tidy()
        if self.chance.random() < 0.7:
            await self.save_offsets()

    def noise(self) -> None:
        self.store.append(draft(b"x" * 500, "noise"))

    # what must hold

    def delivered(self) -> Counter[bytes]:
        return Counter(body for queue_id in range(2) for body in bodies(self.store, TOPIC, queue_id))

    def judge(self) -> None:
        for body, count in self.delivered().items():
            assert count == 1, f"{body!r} was delivered {count} times"
            assert self.known[body].is_committed, f"{body!r} was delivered without a commit"

    async def finish(self) -> None:
        """Nothing goes wrong any more, and everybody is asked until nothing is open."""
        for transaction in self.known.values():
            if transaction.is_committed is None:
                transaction.is_committed = self.chance.random() < 0.5
        for _ in range(ROUNDS_MAX):
            if not self.transactions.checks.waiting_count:
                break
            self.clock.now_ms += 60_000
            self.asked.clear()
            self.transactions.checks.carry_out("0", self.clock())
            for body, commit_log_offset in self.asked:
                self.end(self.known[body], commit_log_offset)
            self.disk.flush()
        else:
            raise AssertionError("checks find no end")
        delivered = self.delivered()
        for body, transaction in self.known.items():
            if transaction.is_safe:
                assert delivered[body] == transaction.is_committed, f"{body!r}: {delivered[body]} times"
        self.judge()
        assert not bodies(self.store, CHECK_MAX_TIME_TOPIC)
        await self.settle()

    async def settle(self) -> None:
        """All is written down: the next life has nothing to find out."""
        for _ in range(2):
            self.transactions._ops.write()
            self.disk.flush()
        await self.transactions.tidy()
        await self.transactions.tidy()
        await self.save_offsets()
        assert self.transactions.pinned() is None
        self.kill()
        assert self.transactions.checks.waiting_count == 0


async def live(folder: Path, seed: int) -> None:
    life = Life(folder, seed)
    try:
        for _ in range(life.chance.randrange(STEPS // 2, STEPS)):
            await life.step()
            life.judge()
        await life.finish()
    finally:
        life.transactions._ops.stop()
        abandon(life.store)


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that flushes by itself would make each life another one, and a seed tell nothing."""
    monkeypatch.setattr(Flusher, "_run", lambda _: None)


@pytest.mark.parametrize("first", SEEDS or range(0, LIVES, LIVES_PER_TEST))
def test_transactions_end_once_whatever_happens(tmp_path: Path, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions_module, "BEHIND_MAX", 8)
    for seed in [first] if SEEDS else range(first, first + LIVES_PER_TEST):
        folder = tmp_path / str(seed)
        loop = VirtualLoop(VirtualTime())  # its timers never ring
        try:
            loop.run(live(folder, seed))
        except BaseException as error:
            error.add_note(f"TRANSACTIONS_SEED={seed}")
            raise
        finally:
            loop.drop()
        shutil.rmtree(folder)
