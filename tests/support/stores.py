"""Building blocks of store tests: drafts, a clock that is set by hand, reading a whole queue."""

from __future__ import annotations

from pathlib import Path

from broker.engine.store.files import FileLayer
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import MessageDraft, StoreConfig
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import Property, encode_properties
from remoting.wire.stored_message import StoredMessage, decode_messages
from remoting.wire.tags import tags_code
from tests.support.faulty_files import UnflushedFiles
from tests.support.waiting import wait_until

START_MS = 1_700_000_000_000
# Small, so that tests cross segments and queue files; a checkpoint only at opening and closing, and always there.
SMALL = StoreConfig(
    segment_bytes=16_384,
    queue_file_entries=32,
    flush="async",
    checkpoint_bytes=1 << 60,
    checkpoint_interval_ms=1 << 60,
    close_flush_max_s=600.0,
)


class ManualClock:
    """Milliseconds, moved by the test."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def draft(
    body: bytes = b"hello",
    topic: str = "orders",
    queue_id: int = 0,
    tags: str | None = None,
    keys: str | None = None,
    unique_key: str | None = None,
    **fields: object,
) -> MessageDraft:
    """A message as the request processors would hand it over."""
    properties = {Property.TAGS: tags, Property.KEYS: keys, Property.UNIQ_KEY: unique_key}
    text = encode_properties({name: value for name, value in properties.items() if value is not None})
    values: dict[str, object] = {
        "born_host": ("127.0.0.1", 40000),
        "store_host": ("127.0.0.1", 10911),
        "born_timestamp_ms": START_MS,
        "properties_text": text,
        "tags_code": tags_code(tags) if topic != SCHEDULE_TOPIC else 0,
    }
    return MessageDraft(topic=topic, queue_id=queue_id, body=body, **(values | fields))  # type: ignore[arg-type]


def open_store(
    path: Path,
    config: StoreConfig = SMALL,
    clock: ManualClock | None = None,
    files: FileLayer | None = None,
) -> MessageStore:
    return MessageStore.open(path, config, clock or ManualClock(), files or UnflushedFiles())


def read_queue(store: MessageStore, topic: str = "orders", queue_id: int = 0) -> list[StoredMessage]:
    """All messages of a queue, in the order and with the limits of a consumer's pulls."""
    messages: list[StoredMessage] = []
    position = store.min_offset(topic, queue_id)
    while position < store.max_offset(topic, queue_id):
        result = store.read(topic, queue_id, position, 32, 262_144)
        assert result.next_begin_offset > position, result.status
        found = decode_messages(result.body)
        assert len(found) == result.message_count
        messages += found
        position = result.next_begin_offset
    return messages


def bodies(store: MessageStore, topic: str = "orders", queue_id: int = 0) -> list[bytes]:
    return [message.body for message in read_queue(store, topic, queue_id)]


def wait_for_flush(store: MessageStore) -> None:
    wait_until(lambda: store.flushed_commit_log_offset == store.max_commit_log_offset, what="the flush")


def remove_oldest(store: MessageStore) -> bool:
    """Takes the oldest segment away, files too; False when it is pinned or the last. Waits for flush and checkpoint."""
    wait_for_flush(store)
    oldest = store.retention.oldest
    if oldest is None or oldest.is_pinned:
        return False
    removal = wait_until(store.retention.begin, what="a segment that may go")
    removal.carry_out()
    store.retention.finish(removal)
    return True


def abandon(store: MessageStore) -> None:
    """What a kill leaves: nothing is flushed or tidied, only the operating system's part (lock, descriptors) goes."""
    store._flusher.stop()
    store._log.close()
    store._mapped.close_all()
    store._folder.release()
