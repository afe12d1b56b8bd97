"""What a broker must show, in dicts and lists: messages per queue, what is still to come, offsets, who waits.

It knows the rules, not the code: when a message may be seen, when it must be, which one a pull gives.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

Place = tuple[str, int]
# Offsets are saved every 5 s; a kill takes what was committed since.
SAVED_WITHIN_S = 5.1
LOCK_EXPIRY_S = 60.0


@dataclass(frozen=True)
class Entry:
    """A message as readers see it. `body` names it; retries and dead letters of it bear the same name."""

    body: str
    tag: str | None
    reconsume_times: int = 0


@dataclass(frozen=True)
class Awaited:
    """A message that was accepted and is not to be seen before `due_ms` of the broker's clock, or before `waited_s` of
    the time that really passes: what waits so long has waited, whatever somebody made of the clock."""

    place: Place
    entry: Entry
    due_ms: int
    waited_s: float = math.inf

    def may_come(self, now_ms: int, now_s: float) -> bool:
        return self.due_ms <= now_ms or self.waited_s <= now_s


@dataclass(frozen=True)
class Held:
    """A pull that waits for its answer."""

    client: str
    opaque: int
    place: Place
    offset: int
    tag: str | None
    deadline_s: float


@dataclass
class Half:
    """A transaction's message, and where the broker said it lies."""

    place: Place
    entry: Entry
    queue_offset: int
    commit_log_offset: int
    is_open: bool = True


@dataclass
class Model:
    queues: dict[Place, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    awaited: list[Awaited] = field(default_factory=list)
    # group, place -> (time, offset) of every commit, oldest first.
    commits: dict[tuple[str, Place], list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    members: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    held: list[Held] = field(default_factory=list)
    # What was sent for a time, and the handle to take it back.
    handles: list[tuple[Awaited, str]] = field(default_factory=list)
    halves: dict[str, Half] = field(default_factory=dict)
    # group, place -> (client, when it last asked).
    locks: dict[tuple[str, Place], tuple[str, float]] = field(default_factory=dict)

    def appeared(self, place: Place, entry: Entry, now_ms: int, now_s: float) -> None:
        """An entry is seen that nobody put there directly: it must have been awaited, and be due."""
        candidates = [one for one in self.awaited if (one.place, one.entry) == (place, entry)]
        assert candidates, f"{entry} came to {place}, where nothing like it was to come"
        first = next((one for one in candidates if one.may_come(now_ms, now_s)), None)
        assert first is not None, f"{entry} came early: {candidates} at {now_ms} ms, {now_s} s"
        self.awaited.remove(first)
        self.queues[place].append(entry)

    def matching(self, place: Place, offset: int, tag: str | None) -> list[tuple[int, Entry]]:
        entries = list(enumerate(self.queues[place]))[offset:]
        return [(position, entry) for position, entry in entries if tag is None or entry.tag == tag]

    def process_ended(self) -> None:
        """What a broker does not remember over its own end."""
        self.members.clear()
        self.held.clear()
        self.locks.clear()

    def commit(self, group: str, place: Place, offset: int, now_s: float) -> None:
        self.commits[group, place].append((now_s, offset))

    def after_kill(self, group: str, place: Place, now_s: float) -> set[int | None]:
        """What may be remembered: the last commit that was surely saved, or any after it."""
        surely: int | None = None
        since: list[int] = []
        for time_s, offset in self.commits[group, place]:
            if time_s <= now_s - SAVED_WITHIN_S:
                surely = offset
            else:
                since.append(offset)
        return {surely, *since}

    def lock(self, group: str, client: str, places: set[Place], now_s: float) -> set[Place]:
        """Those that `client` holds now."""
        granted: set[Place] = set()
        for place in places:
            holder, since_s = self.locks.get((group, place), (client, now_s))
            if holder == client or now_s - since_s > LOCK_EXPIRY_S:
                self.locks[group, place] = client, now_s
                granted.add(place)
        return granted

    def unlock(self, group: str, client: str, places: set[Place]) -> None:
        for place in places:
            if self.locks.get((group, place), ("", 0))[0] == client:
                del self.locks[group, place]
