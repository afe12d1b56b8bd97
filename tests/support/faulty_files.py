"""File layers that fail when told to, one that does not flush, one that knows what a power cut would have left."""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
from pathlib import Path

from broker.engine.store.files import FileLayer, backup_of

_PAGE_BYTES = 4096


class UnflushedFiles(FileLayer):
    """Hands nothing to the disk: no test's machine loses power, and waiting for the disk would be most of its time."""

    def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
        pass

    def fsync(self, descriptor: int) -> None:  # type: ignore[override]
        pass


class FaultyFiles(UnflushedFiles):
    """`full`: no more space is given. `write_error`: what the next pwrite says after `write_bytes` bytes.
    `sync_error`: what every fdatasync says."""

    def __init__(self) -> None:
        self.is_full = False
        self.write_error: int | None = None
        self.write_bytes = 0
        self.sync_error: int | None = None
        self.sync_count = 0

    def allocate(self, descriptor: int, start: int, byte_count: int) -> None:  # type: ignore[override]
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.posix_fallocate(descriptor, start, byte_count)

    def pwrite(self, descriptor: int, data: bytes, position: int) -> int:  # type: ignore[override]
        if self.write_error is None:
            return os.pwrite(descriptor, data, position)
        if self.write_bytes:
            part, self.write_bytes = self.write_bytes, 0
            return os.pwrite(descriptor, data[:part], position)
        error, self.write_error = self.write_error, None
        raise OSError(error, os.strerror(error))

    def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
        self.sync_count += 1
        if self.sync_error is not None:
            raise OSError(self.sync_error, os.strerror(self.sync_error))


class OnePlaceFiles(FileLayer):
    """Takes what was put together in another folder for the same files, and not for a copy."""

    def identity(self, descriptor: int) -> int:
        return 1


class PowerCutFiles(OnePlaceFiles):
    """Keeps beside the real folder a shadow of what is surely on the disk: each file as it was last flushed."""

    def __init__(self, root: Path, shadow: Path) -> None:
        self._root = root
        self._shadow = shadow
        # The power goes between two steps of the flusher's thread, not beside one.
        self._lock = threading.RLock()

    def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        target = self._shadow / path.relative_to(self._root)
        target.parent.mkdir(parents=True, exist_ok=True)
        # The flusher's thread and the loop may flush the same file: an older copy must not come last.
        with self._lock:
            fresh = target.with_name(target.name + ".shadow")
            try:
                shutil.copyfile(path, fresh)
            except FileNotFoundError:  # removed meanwhile: a descriptor may outlive its file
                return
            fresh.replace(target)

    def replace_json(self, path: Path, value: object) -> None:
        with self._lock:
            super().replace_json(path, value)
            for one in (path, backup_of(path)):
                target = self._shadow / one.relative_to(self._root)
                target.with_name(one.name + ".tmp").replace(target)

    def fsync(self, descriptor: int) -> None:  # type: ignore[override]
        """A folder: what was removed from it stays removed."""
        folder = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        shadow = self._shadow / folder.relative_to(self._root)
        with self._lock:
            for path in shadow.iterdir() if shadow.is_dir() else ():
                if path.name.isdigit() and path.is_file() and not (folder / path.name).exists():
                    path.unlink()

    def cut(self, destination: Path, chance: random.Random) -> None:
        """Builds in `destination` a disk after a power cut: of every page that was written but not flushed, the old
        or the new content; of a file never flushed, perhaps nothing at all."""
        with self._lock:
            self._mix(destination, chance)
            self._bring_back_removed(destination, chance)

    def _mix(self, destination: Path, chance: random.Random) -> None:
        # In order: what the chance gives must not depend on how a file system lists them.
        for path in sorted(self._root.rglob("*")):
            if path.is_dir() or path.name == "lock":
                continue
            inner = path.relative_to(self._root)
            target, flushed = destination / inner, self._shadow / inner
            # What was tidied away since may come back as long as the folder was not flushed; that is the harder case.
            if not flushed.exists() and chance.random() < 0.5:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            new = path.read_bytes()
            old = flushed.read_bytes() if flushed.exists() else b""
            target.write_bytes(_mixed(old.ljust(len(new), b"\0"), new, chance))

    def _bring_back_removed(self, destination: Path, chance: random.Random) -> None:
        """Of the files removed since their folder was flushed, the last ones come back, or all."""
        for folder in (path for path in sorted(self._shadow.rglob("*")) if path.is_dir()):
            if not (self._root / folder.relative_to(self._shadow)).is_dir():
                continue
            removed = sorted(
                path
                for path in folder.iterdir()
                if path.name.isdigit() and not (self._root / path.relative_to(self._shadow)).exists()
            )
            for path in removed[chance.randrange(len(removed) + 1) :]:
                target = destination / path.relative_to(self._shadow)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def _mixed(old: bytes, new: bytes, chance: random.Random) -> bytes:
    if old == new:
        return new
    keeps_new = chance.random()
    pages = [
        (new if chance.random() < keeps_new else old)[start : start + _PAGE_BYTES]
        for start in range(0, len(new), _PAGE_BYTES)
    ]
    return b"".join(pages)
