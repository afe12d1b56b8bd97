"""Checks whether the viewers of open pages may still see them. Asked by the heartbeat, and before anything is told.

The heartbeat, which tells nothing, asks only whether they are still logged in. Which clusters they see is checked when
a page subscribes, and before each region and each change. Two queries check VIEWERS_PER_QUERY viewers, seven judge
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.models import Session
from django.utils import timezone

from mqadmin.people.rights import Rights, rights_of

CLOSE_NOT_LOGGED_IN = 4401
CLOSE_NOT_ALLOWED = 4403
# SQLite builds exist that take no more than 999 parameters.
VIEWERS_PER_QUERY = 500


@dataclass(frozen=True, slots=True)
class Viewer:
    """A session and its account. `auth_hash` changes with the account's password."""

    session_key: str
    user_id: Any
    auth_hash: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of a viewer: the account's rights, or the code that closes all its sockets."""

    rights: Rights | None
    code: int = 0

    def close_code(self, cluster_ids: frozenset[int]) -> int:
        """Returns the code that closes a socket of the viewer that shows these clusters; 0: it may stay open."""
        if self.rights is None or self.rights.sees(cluster_ids):
            return self.code
        return CLOSE_NOT_ALLOWED


def viewer_of(session_key: str, user: AbstractBaseUser) -> Viewer:
    """Returns the viewer of a socket that was opened with this session."""
    return Viewer(session_key, user.pk, user.get_session_auth_hash())


def close_codes(viewers: Collection[Viewer]) -> dict[Viewer, int]:
    """Returns the viewers that may not see their pages any more, each with the code that closes their sockets.

    CLOSE_NOT_LOGGED_IN: logged out, session expired, or password changed. CLOSE_NOT_ALLOWED: account deactivated or
    deleted.
    """
    codes: dict[Viewer, int] = {}
    for batch in _batches(viewers):
        codes |= _codes_of(batch)
    return codes


def judged(viewers: Collection[Viewer]) -> dict[Viewer, Judged]:
    """Returns of each viewer whether the sockets are closed, or else the rights."""
    found: dict[Viewer, Judged] = {}
    for batch in _batches(viewers):
        codes = _codes_of(batch)
        of_people = rights_of({viewer.user_id for viewer in batch})
        for viewer in batch:
            # An account that is gone since the codes were read has none any more.
            rights = None if viewer in codes else of_people.get(viewer.user_id)
            found[viewer] = Judged(rights, codes.get(viewer, 0 if rights else CLOSE_NOT_ALLOWED))
    return found


def _codes_of(batch: Collection[Viewer]) -> dict[Viewer, int]:
    codes: dict[Viewer, int] = {}
    sessions = _open_sessions(batch)
    hashes = _auth_hashes(batch)
    for viewer in batch:
        if viewer.user_id not in hashes:
            codes[viewer] = CLOSE_NOT_ALLOWED
        elif viewer.session_key not in sessions or hashes[viewer.user_id] != viewer.auth_hash:
            codes[viewer] = CLOSE_NOT_LOGGED_IN
    return codes


def _batches(viewers: Collection[Viewer]) -> Iterator[list[Viewer]]:
    remaining = iter(set(viewers))
    while batch := list(islice(remaining, VIEWERS_PER_QUERY)):
        yield batch


def _open_sessions(viewers: Collection[Viewer]) -> set[str]:
    keys = {viewer.session_key for viewer in viewers}
    found = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    return set(found.values_list("session_key", flat=True))


def _auth_hashes(viewers: Collection[Viewer]) -> dict[Any, str]:
    """Returns the auth hashes of the active accounts by primary key."""
    ids = {viewer.user_id for viewer in viewers}
    found = get_user_model()._default_manager.filter(pk__in=ids, is_active=True)
    return {user.pk: user.get_session_auth_hash() for user in found.only("pk", "password")}
