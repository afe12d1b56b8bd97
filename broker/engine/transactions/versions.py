"""The versions of a half message: each check appends it anew, and each version names the one before.

`prepared_transaction_offset` of a version is the commit-log offset of the one before, plus 1.
"""

from __future__ import annotations

from broker.engine.store.message_store import MessageStore
from broker.engine.transactions.undecided import Undecided
from remoting.wire.names import HALF_TOPIC
from remoting.wire.stored_message import StoredMessage, decode_message

# Versions of one half that are looked through for the one that is undecided now; more than checks ever make by default.
_VERSIONS_MAX = 64
_LONG_AGO_MS, _FAR_AHEAD_MS = 0, 2**62


def undecided_version(store: MessageStore, half: StoredMessage, undecided: Undecided) -> StoredMessage | None:
    """The version of `half` that is undecided now; None when it has ended."""
    if half.queue_offset in undecided:
        return half
    versions = _versions(store, half)
    by_place = {version.commit_log_offset: version for version in versions}
    for version in versions:
        if version.queue_offset in undecided and _comes_from(version, half, by_place):
            return version
    return None


def has_follower(store: MessageStore, record: StoredMessage) -> bool:
    """Whether a version in the half topic names this one as the one before."""
    return any(_before(version) == record.commit_log_offset for version in _versions(store, record))


def _versions(store: MessageStore, half: StoredMessage) -> list[StoredMessage]:
    """Those in the half topic, newest first."""
    key = half.unique_key
    if key is None:
        return []
    found = store.query_by_key(HALF_TOPIC, key, _VERSIONS_MAX, _LONG_AGO_MS, _FAR_AHEAD_MS)
    return [decode_message(record) for record in found]


def _before(version: StoredMessage) -> int:
    """The commit-log offset of the version before; -1 for the first."""
    return version.prepared_transaction_offset - 1


def _comes_from(version: StoredMessage, half: StoredMessage, by_place: dict[int, StoredMessage]) -> bool:
    """Whether `half` is among the versions that `version` follows on."""
    for _ in by_place:
        if _before(version) == half.commit_log_offset:
            return True
        earlier = by_place.get(_before(version))
        if earlier is None:
            return False
        version = earlier
    return False
