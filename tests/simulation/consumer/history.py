"""What happened to a group, and what of it must not have: the checker of histories.

Lost        a message that a broker accepted and no listener ever finished
Order       (in order) a listener that begins before all earlier messages of its queue were finished once, or beside
            another of its queue whose member nothing had happened to
Twice       a message that was finished before, without what explains it: a fault of the member that finished it, or of
            the broker, while the listener ran or within the time in which its offset had to be stored; or it was sent
            back more often than it failed, since an answer was lost
Backwards   a member that commits less than it committed before, in order, or else since it took the queue
Too far     a commit past a message that is neither finished nor sent back

Numbers of messages are their queue offsets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

# A member persists each 5 s; a broker writes what it got to its file each 5 s.
MEMBER_PERSISTS_WITHIN_S = 6.0
BROKER_PERSISTS_WITHIN_S = 12.0
# Without locks queues move while their messages are under way: at whatever happens to anybody, until all have heard.
MOVES_WITHIN_S = 40.0

BROKER = "the broker"
GROUP = "the group"

Message = tuple[int, int]


@dataclass(slots=True)
class Call:
    """A listener's call for a message. `ended_s` None: it runs; `is_ok` once it returned."""

    member: str
    message: Message
    began_s: float
    ended_s: float | None = None
    is_ok: bool = False

    def __str__(self) -> str:
        end = "runs" if self.ended_s is None else f"{'ok' if self.is_ok else 'not ok'} at {self.ended_s:.2f}"
        return f"{self.member} {self.message} from {self.began_s:.2f}, {end}"


@dataclass(slots=True)
class Fault:
    """Something that happened to `who`; `ended_s` is moved on while it lasts."""

    who: str
    began_s: float
    ended_s: float
    what: str


@dataclass
class History:
    """`now_s` is the virtual time. `is_orderly`: the rules of order hold, too. `wrong` are the broken rules."""

    now_s: Callable[[], float]
    is_orderly: bool
    wrong: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    twice_count: int = 0
    _done: dict[Message, Call] = field(default_factory=dict)
    _failed: Counter[Message] = field(default_factory=Counter)
    _sent_back: Counter[Message] = field(default_factory=Counter)
    _first_undone: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    _running: list[Call] = field(default_factory=list)
    _committed: dict[tuple[str, int], int] = field(default_factory=dict)

    # what happens

    def began(self, member: str, message: Message) -> Call:
        call = Call(member, message, self.now_s())
        if self.is_orderly:
            self._check_order(call)
        if message in self._done:
            self.twice_count += 1
            self._check_twice(call, self._done[message])
        self._running.append(call)
        return call

    def ended(self, call: Call, *, is_ok: bool) -> None:
        call.ended_s, call.is_ok = self.now_s(), is_ok
        self._running.remove(call)
        if is_ok:
            self._done[call.message] = call
        else:
            self._failed[call.message] += 1

    def killed(self, member: str) -> None:
        """Its calls end, and count for nothing."""
        self._running = [call for call in self._running if call.member != member]

    def sent_back(self, message: Message) -> None:
        self._sent_back[message] += 1

    def committed(self, member: str, queue_id: int, offset: int) -> None:
        before = self._committed.get((member, queue_id), 0)
        if offset < before:
            self.wrong.append(f"{self.now_s():.2f}: {member} commits {offset} of {queue_id}, and {before} before")
        self._committed[member, queue_id] = offset
        if offset > (undone := self.first_undone(queue_id)):
            self.wrong.append(f"{self.now_s():.2f}: {member} commits {offset} of {queue_id}, {undone} is not finished")

    def took(self, member: str, queue_id: int) -> None:
        """It asked for the offset to begin at. Without locks another member may have committed a smaller one."""
        if not self.is_orderly:
            self._committed.pop((member, queue_id), None)

    def broker_forgot(self) -> None:
        """A broker that was killed may go on with less than was committed."""
        self._committed.clear()

    def fault(self, who: str, what: str) -> Fault:
        fault = Fault(who, self.now_s(), self.now_s(), what)
        self.faults.append(fault)
        return fault

    # what is asked

    def first_undone(self, queue_id: int) -> int:
        number = self._first_undone[queue_id]
        while (queue_id, number) in self._done or (queue_id, number) in self._sent_back:
            number += 1
        self._first_undone[queue_id] = number
        return number

    @property
    def lost(self) -> list[Message]:
        every = ((queue_id, number) for queue_id, count in self.sent.items() for number in range(count))
        return [message for message in every if message not in self._done]

    @property
    def is_idle(self) -> bool:
        return not self._running

    # the rules

    def _check_order(self, call: Call) -> None:
        queue_id, number = call.message
        if number > (undone := self.first_undone(queue_id)):
            self.wrong.append(f"{call}: {undone} is not finished")
        for other in self._running:
            if other.message[0] == queue_id and not self._explains(other, within_s=0):
                self.wrong.append(f"{call} beside {other}")

    def _check_twice(self, call: Call, first: Call) -> None:
        is_copied = self._sent_back[call.message] > self._failed[call.message]
        if not is_copied and not self._explains(first, within_s=None):
            self.wrong.append(f"{call} after {first}")

    def _explains(self, call: Call, within_s: float | None) -> bool:
        """Returns True where something that happened is why another member got the call's message."""
        end_s = self.now_s() if call.ended_s is None else call.ended_s
        if not self.is_orderly:
            return any(_is_near(fault, call.began_s - MOVES_WITHIN_S, end_s + MOVES_WITHIN_S) for fault in self.faults)
        return any(
            _is_near(fault, call.began_s, end_s + (_persists_within_s(fault.who) if within_s is None else within_s))
            for fault in self.faults
            if fault.who in (call.member, BROKER)
        )


def _is_near(fault: Fault, from_s: float, to_s: float) -> bool:
    return fault.ended_s >= from_s and fault.began_s <= to_s


def _persists_within_s(who: str) -> float:
    return BROKER_PERSISTS_WITHIN_S if who == BROKER else MEMBER_PERSISTS_WITHIN_S
