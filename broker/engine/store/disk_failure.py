"""The first failed write or flush of a store: from then on it accepts no message and acknowledges none.

After a failed write or fsync the kernel may have dropped the dirty pages and marked them clean: a second fsync would
succeed although the bytes are lost. Only opening the store again, which verifies what is on the disk, ends this state.
Recorded on the event loop or in the flusher thread (one attribute, the first failure is kept), read by both.
"""

from __future__ import annotations

import logging
from pathlib import Path

from broker.engine.store.errors import StoreFailed

logger = logging.getLogger(__name__)


class DiskFailure:
    """Holds the error with which the store refuses appends and flushes, `error`; None while the disk works."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.error: StoreFailed | None = None

    def record(self, what: str, cause: BaseException) -> StoreFailed:
        """Stops the store because the operation `what` failed. Returns the error to raise: the first failure's."""
        error = StoreFailed(
            f"the store {self._path} accepts nothing more: {what} failed ({cause}). Check the disk, then restart "
            "the broker; acknowledged messages are kept and stay readable."
        )
        if self.error is None:
            self.error = error
            logger.critical("%s", error)
        return self.error

    def check(self) -> None:
        """Raises StoreFailed if a write or flush has failed."""
        if self.error is not None:
            raise self.error
