"""The errors of the store. Each text names the file or folder and the remedy.

StoreError
  StoreLocked         another process has this store open
  StoreVersionError   the folder is a store of another version, or not a store of this broker
  StoreFull           no space for this message: refused as a whole, later appends may succeed
  StoreFailed         a write or flush failed: no message is accepted until the store is opened again
  RecordRefused       this message can never be stored (too large, a field out of range)
  StoreClosed         used after close()
  IndexesStale        the indexes contradict the log; recovery catches it and rebuilds them
"""

from __future__ import annotations


class StoreError(Exception):
    """Base class of all errors of the store."""


class StoreLocked(StoreError):
    """Another process has the store open."""


class StoreVersionError(StoreError):
    """The folder is not a store that this version can read."""


class StoreFull(StoreError):
    """The disk has no space. Nothing of the refused message was stored."""


class StoreFailed(StoreError):
    """A write or flush failed. Messages acknowledged before stay readable."""


class RecordRefused(StoreError):
    """The message does not fit the record layout or a segment."""


class StoreClosed(StoreError):
    """The store is closed."""


class IndexesStale(StoreError):
    """The consume queues or the key index do not match the log, and must be rebuilt from it."""
