"""What can go wrong in the store. Every text names the thing and the remedy.

StoreError
  StoreLocked         another process has this store open
  StoreVersionError   the folder is a store of another version, or none of ours
  StoreFull           no space for this message: refused as a whole, later appends may succeed
  StoreFenced         a write or flush failed: nothing is accepted until the store is opened again
  RecordRefused       this message can never be stored (too large, a field out of range)
  StoreClosed         used after close()
"""

from __future__ import annotations


class StoreError(Exception):
    """Root of all errors of the store."""


class StoreLocked(StoreError):
    """Another process holds the store."""


class StoreVersionError(StoreError):
    """A store that this version cannot read."""


class StoreFull(StoreError):
    """The disk has no room. The refused message left no trace."""


class StoreFenced(StoreError):
    """The disk failed; what was acknowledged before stays readable."""


class RecordRefused(StoreError):
    """The message does not fit the record layout or a segment."""


class StoreClosed(StoreError):
    """The store was closed before."""


class IndexesStale(StoreError):
    """The consume queues or the key index are not what the log says."""
