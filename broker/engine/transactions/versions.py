"""The versions of a half message: each check appends it anew, and each version names the previous one.

`prepared_transaction_offset` of a version is the commit-log offset of the previous one, plus 1.
"""

from __future__ import annotations

from broker.engine.store.message_store import MessageStore
from broker.engine.transactions.undecided import Undecided
from remoting.wire.names import HALF_TOPIC
from remoting.wire.stored_message import StoredMessage, decode_message

# Versions of one half that are searched for the one that is undecided now; more than checks ever make by default.
_VERSIONS_MAX = 64
_LONG_AGO_MS, _FAR_AHEAD_MS = 0, 2**62


def undecided_version(store: MessageStore, half: StoredMessage, undecided: Undecided) -> StoredMessage | None:
    """Returns the version of `half` that is undecided now; None when the half has ended."""
    if half.queue_offset in undecided:
        return half
    versions = _versions(store, half)
    by_offset = {version.commit_log_offset: version for version in versions}
    for version in versions:
        if version.queue_offset in undecided and _descends_from(version, half, by_offset):
            return version
    return None


def has_follower(store: MessageStore, record: StoredMessage) -> bool:
    """Returns whether a version in the half topic names `record` as its previous version."""
    return any(_previous_offset(version) == record.commit_log_offset for version in _versions(store, record))


def _versions(store: MessageStore, half: StoredMessage) -> list[StoredMessage]:
    """Returns the versions of `half` in the half topic, newest first."""
    key = half.unique_key
    if key is None:
        return []
    found = store.query_by_key(HALF_TOPIC, key, _VERSIONS_MAX, _LONG_AGO_MS, _FAR_AHEAD_MS)
    return [decode_message(record) for record in found]


def _previous_offset(version: StoredMessage) -> int:
    """Returns the commit-log offset of the previous version; -1 for the first."""
    return version.prepared_transaction_offset - 1


def _descends_from(version: StoredMessage, half: StoredMessage, by_offset: dict[int, StoredMessage]) -> bool:
    """Returns whether `half` is among the previous versions of `version`; `by_offset`: by commit-log offset."""
    for _ in by_offset:
        if _previous_offset(version) == half.commit_log_offset:
            return True
        earlier = by_offset.get(_previous_offset(version))
        if earlier is None:
            return False
        version = earlier
    return False
