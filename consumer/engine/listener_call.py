"""One call of a listener: made by the event loop, carried out by a worker, handed back to the event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from consumer.engine.listening import Listener
from consumer.engine.message import Message, to_message
from consumer.engine.process_queue import CachedMessage
from consumer.engine.subscriptions import original_topic


class NoListener(LookupError):
    """The group has no listener for the topic: a retry of one whose listener was removed."""


class ListenerCall:
    """`messages` are of one queue and of one original topic, `topic`: one, or up to the listener's `batch_size`.

    A worker writes the other fields. `error` None: the listener returned. `is_skipped`: the queue was lost before the
    listener was called. `listener` None: nobody listens to the topic, so that the call fails with NoListener.
    `spoiled`: messages of a batch that are no longer among `messages`, because their bodies cannot be read, and why.
    """

    __slots__ = ("duration_ms", "error", "is_skipped", "listener", "messages", "spoiled", "topic")

    def __init__(self, topic: str, listener: Listener | None, messages: Sequence[CachedMessage]) -> None:
        self.topic = topic
        self.listener = listener
        self.messages = messages
        self.spoiled: list[tuple[CachedMessage, Exception]] = []
        self.error: BaseException | None = None
        self.duration_ms = 0.0
        self.is_skipped = False

    @property
    def first(self) -> CachedMessage:
        return self.messages[0]

    def __str__(self) -> str:
        stored = self.first.stored
        others = f" and {len(self.messages) - 1} behind it" if len(self.messages) > 1 else ""
        return f"topic {stored.topic} message {stored.message_id} (times {self.first.reconsume_times}){others}"

    def begin(self, now_ms: int) -> tuple[Listener, Message | list[Message]]:
        """Marks the messages as begun; returns the listener and what it is to be called with.

        Raises NoListener, and what is wrong with a body: BodyError when it was compressed, or NotDecoded.
        In a batch such messages go to `spoiled`, so that the listener gets the others.
        """
        for cached in self.messages:
            cached.started_ms = now_ms
        if self.listener is None:
            raise NoListener(f"no listener for topic {self.topic!r}")
        decode = self.listener.decode
        if self.listener.batch_size is None:
            return self.listener, to_message(self.messages[0], self.topic, decode)
        good: list[CachedMessage] = []
        batch: list[Message] = []
        for cached in self.messages:
            try:
                batch.append(to_message(cached, self.topic, decode))
                good.append(cached)
            except Exception as error:
                self.spoiled.append((cached, error))
        if not good:
            first = self.spoiled[0][1]
            self.spoiled.clear()
            raise first
        self.messages = good
        return self.listener, batch


# Takes finished calls, on the event loop.
Reported = Callable[[list[ListenerCall]], None]


def make_calls(messages: Sequence[CachedMessage], listeners: Mapping[str, Listener]) -> list[ListenerCall]:
    """Divides messages of one queue among calls, in their order: by original topic, then by batch size."""
    calls: list[ListenerCall] = []
    for topic, of_topic in groupby(messages, lambda cached: original_topic(cached.stored)):
        listener = listeners.get(topic)
        if listener is None or listener.batch_size is None:
            calls += [ListenerCall(topic, listener, (cached,)) for cached in of_topic]
        else:
            batches = list(of_topic)
            for start in range(0, len(batches), listener.batch_size):
                calls.append(ListenerCall(topic, listener, batches[start : start + listener.batch_size]))
    return calls
