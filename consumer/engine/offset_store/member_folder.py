"""The folder in which a member of a broadcasting group keeps its offsets between its runs.

    <offsets folder>/<group>/0/    of the first member on this machine, 1/ of a second beside it, …
        lock                       held by the member while it runs
        offsets.json

Client ids are new with each start, so a member is known by the first number that no running one has: after a restart
it finds what it left. Java uses `<client id>/<group>`, where two members with the same id write one file.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

# Members of one group on one machine.
MEMBERS_MAX = 1000


class MemberFolder:
    """`close()` gives the folder to the next member."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def close(self) -> None:
        os.close(self._descriptor)


def claim_folder(group_folder: Path) -> MemberFolder:
    """Returns the first folder that no running member has; makes it. Raises OSError."""
    for number in range(MEMBERS_MAX):
        path = group_folder / str(number)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        return MemberFolder(path, descriptor)
    raise OSError(f"{group_folder}: {MEMBERS_MAX} members of the group run on this machine already")
