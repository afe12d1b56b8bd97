"""The fence: once the disk has failed, nothing is acknowledged any more.

After a failed write or fsync the kernel may have thrown the dirty pages away and marked them clean: trying again
would say "safe" and be wrong. Only opening the store again, which verifies what is on the disk, takes the fence down.
Set from the event loop or the flusher thread (one attribute, first reason wins), read by both.
"""

from __future__ import annotations

import logging
from pathlib import Path

from broker.engine.store.errors import StoreFenced

logger = logging.getLogger(__name__)


class Fence:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.error: StoreFenced | None = None

    def put_up(self, what: str, cause: BaseException) -> StoreFenced:
        """Fences the store because `what` failed. Returns the error to raise."""
        error = StoreFenced(
            f"the store {self._path} accepts nothing more: {what} failed ({cause}). Check the disk, then restart "
            "the broker; acknowledged messages are kept and stay readable."
        )
        if self.error is None:
            self.error = error
            logger.critical("%s", error)
        return self.error

    def check(self) -> None:
        """Raises StoreFenced when the fence is up."""
        if self.error is not None:
            raise self.error
