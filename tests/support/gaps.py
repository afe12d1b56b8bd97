"""How long a group stood still while messages waited, as the broker's committed offsets say."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from tests.support.broker_probe import BrokerProbe

POLL_S = 0.03


class CommittedOffsets:
    """Asks the broker in a thread while the context is open. `longest_gap_s`: of any queue of the topic.

    Never more than it was, however late an answer comes: a gap begins after the answer that told of the last move, or
    of the first message that waits, and ends before the question whose answer still tells the same offset.
    """

    def __init__(self, probe: BrokerProbe, group: str, topic: str) -> None:
        self._probe, self._group, self._topic = probe, group, topic
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="committed offsets")
        self._moved_s: dict[int, float] = {}
        self._seen: dict[int, tuple[int, int]] = {}
        self.longest_gap_s = 0.0
        self.backwards: list[tuple[int, int, int]] = []

    def __enter__(self) -> CommittedOffsets:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            asked_s = time.monotonic()
            offsets = self._probe.progress(self._group, self._topic)
            answered_s = time.monotonic()
            for queue_id, (offset, end) in offsets.items():
                before, end_before = self._seen.get(queue_id, (-1, -1))
                if offset < before:
                    self.backwards.append((queue_id, before, offset))
                if offset != before or offset == end_before:
                    self._moved_s[queue_id] = answered_s
                self._seen[queue_id] = (offset, end)
                self.longest_gap_s = max(self.longest_gap_s, asked_s - self._moved_s[queue_id])
