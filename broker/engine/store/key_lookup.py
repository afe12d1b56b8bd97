"""Finds messages by key: `KeyIndex` names candidates, whose records are then compared. The work is bounded."""

from __future__ import annotations

from itertools import islice

from broker.engine.store.key_index import KeyIndex
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.reader import Reader
from remoting.wire.limits import FRAME_BYTES_MAX
from remoting.wire.stored_message import StoredMessage, decode_message

# RocketMQ's `maxMsgsNumBatch`.
MESSAGES_MAX = 64
# Candidates compared by one lookup, each of them a read from the log.
CANDIDATES_MAX = 4096
# Half a frame: an answer of 64 large messages would exceed the frame size that clients accept.
ANSWER_BYTES_MAX = FRAME_BYTES_MAX // 2
# Bytes read by one lookup of records without the key, whose keys have the same hash: a sender can make any number.
STRANGE_BYTES_MAX = 64 * 1024 * 1024


class KeyLookup:
    """Looks messages up by key (RocketMQ's `DefaultMessageStore.queryMessage`)."""

    def __init__(self, keys: KeyIndex, queues: QueueTable, reader: Reader) -> None:
        self._keys = keys
        self._queues = queues
        self._reader = reader

    def find(
        self, topic: str, key: str, max_messages: int, begin_ms: int, end_ms: int, *, with_deleted: bool = False
    ) -> list[bytes]:
        """Returns the records that have `key` as unique key or among their keys, newest first. Raises OSError.

        `with_deleted`: those of before the topic was deleted, too.
        """
        most = min(max_messages, MESSAGES_MAX)
        candidates = self._keys.find(topic, key, begin_ms, end_ms)
        deleted_until = 0 if with_deleted else self._queues.deleted_until(topic)
        found: dict[int, bytes] = {}
        found_bytes = strange_bytes = 0
        for offset in islice(candidates, CANDIDATES_MAX):
            if len(found) >= most or strange_bytes > STRANGE_BYTES_MAX or offset < deleted_until:
                break
            # The time first: it is in the first bytes of the record, and every message of the log may have the key.
            if offset in found or not begin_ms <= self._reader.timestamp_at(offset) <= end_ms:
                continue
            record = self._reader.record_at(offset)
            if record is None:
                continue
            if not _has_key(decode_message(record), topic, key):
                strange_bytes += len(record)
            else:
                found_bytes += len(record)
                if found and found_bytes > ANSWER_BYTES_MAX:
                    break
                found[offset] = record
        return list(found.values())


def _has_key(message: StoredMessage, topic: str, key: str) -> bool:
    return message.topic == topic and (message.unique_key == key or key in message.keys)
