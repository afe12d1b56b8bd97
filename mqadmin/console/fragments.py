"""Fragments of pages, rendered once for all viewers who may see the same and shared between the threads of a process.

A change makes every open page fetch its region at the same moment. The first request renders it, the others wait for
that and get the same text; so does whoever comes within FRAGMENT_AGE_MAX_S while nothing further changed. A fragment
is shared only under its whole key: address, language, the viewer's rights as far as the region depends on them, and
the revision of what it shows. It is rendered without the request, so nothing of its viewer can get into it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock

# Ages on a page count from here on in the browser; what changes without an event shows after at most this.
FRAGMENT_AGE_MAX_S = 5.0
FRAGMENTS_MAX = 256
FRAGMENTS_CHARS_MAX = 16 * 1024 * 1024
# Who has waited that long for another request's rendering renders the fragment too.
WAIT_MAX_S = 10.0


@dataclass(frozen=True, slots=True)
class FragmentKey:
    """What viewers must have in common to get the same text. `rights`: permissions that the viewer has."""

    path: str
    language: str
    rights: frozenset[str]
    revision: str


@dataclass(slots=True)
class _Fragment:
    expires_at: float
    html: Future[str] = field(default_factory=Future)
    char_count: int = 0


class SharedFragments:
    """The latest fragments of this process, at most FRAGMENTS_MAX and FRAGMENTS_CHARS_MAX. Used by many threads."""

    def __init__(
        self,
        *,
        age_max_s: float = FRAGMENT_AGE_MAX_S,
        count_max: int = FRAGMENTS_MAX,
        chars_max: int = FRAGMENTS_CHARS_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._age_max_s = age_max_s
        self._count_max = count_max
        self._chars_max = chars_max
        self._clock = clock
        self._lock = Lock()
        # Oldest first: all live equally long, so those at the front expire first.
        self._fragments: OrderedDict[FragmentKey, _Fragment] = OrderedDict()
        self._char_count = 0

    def get(self, key: FragmentKey, render: Callable[[], str]) -> str:
        """Returns the fragment, rendered by this call or by another of the same key. Raises what `render` raises."""
        with self._lock:
            self._drop_expired()
            fragment = self._fragments.get(key)
            is_first = fragment is None
            if fragment is None:
                fragment = self._fragments[key] = _Fragment(self._clock() + self._age_max_s)
        if not is_first:
            try:
                return fragment.html.result(timeout=WAIT_MAX_S)
            except TimeoutError:
                return render()
        try:
            html = render()
        except BaseException as error:
            self._drop(key, fragment)
            fragment.html.set_exception(error)
            raise
        fragment.html.set_result(html)
        self._count(key, fragment, len(html))
        return html

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._fragments and next(iter(self._fragments.values())).expires_at <= now:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, dropped = self._fragments.popitem(last=False)
        self._char_count -= dropped.char_count

    def _drop(self, key: FragmentKey, fragment: _Fragment) -> None:
        with self._lock:
            if self._fragments.get(key) is fragment:
                del self._fragments[key]

    def _count(self, key: FragmentKey, fragment: _Fragment, char_count: int) -> None:
        with self._lock:
            if self._fragments.get(key) is fragment:
                fragment.char_count = char_count
                self._char_count += char_count
            while len(self._fragments) > self._count_max or self._char_count > self._chars_max:
                self._drop_oldest()
