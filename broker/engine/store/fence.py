"""The fence: after a failed write or flush the store accepts no message and acknowledges none.

After a failed write or fsync the kernel may have dropped the dirty pages and marked them clean: a second fsync would
succeed although the bytes are lost. Only opening the store again, which verifies what is on the disk, removes the
fence. Set from the event loop or the flusher thread (one attribute, the first reason is kept), read by both.
"""

from __future__ import annotations

import logging
from pathlib import Path

from broker.engine.store.errors import StoreFenced

logger = logging.getLogger(__name__)


class Fence:
    """Holds the error with which the store refuses appends and flushes, `error`; None while the disk works."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.error: StoreFenced | None = None

    def put_up(self, what: str, cause: BaseException) -> StoreFenced:
        """Fences the store because the operation `what` failed. Returns the error to raise: the first failure's."""
        error = StoreFenced(
            f"the store {self._path} accepts nothing more: {what} failed ({cause}). Check the disk, then restart "
            "the broker; acknowledged messages are kept and stay readable."
        )
        if self.error is None:
            self.error = error
            logger.critical("%s", error)
        return self.error

    def check(self) -> None:
        """Raises StoreFenced if the store is fenced."""
        if self.error is not None:
            raise self.error
