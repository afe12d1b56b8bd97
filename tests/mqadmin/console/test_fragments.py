"""Fragments: rendered once for all who may see the same, never given to others, forgotten within bounds."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mqadmin.console.fragments import FragmentKey, SharedFragments
from tests.support.waiting import wait_until


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Rendering:
    """Counts how often it is asked; each text is another one."""

    def __init__(self, text: str = "text") -> None:
        self.text = text
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return f"{self.text} {self.count}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def key(
    path: str = "/", language: str = "en", rights: frozenset[str] = frozenset(), revision: str = "1"
) -> FragmentKey:
    return FragmentKey(path, language, rights, revision)


def test_the_same_is_rendered_once(clock):
    fragments, rendering = SharedFragments(clock=clock), Rendering()
    assert [fragments.get(key(), rendering) for _ in range(50)] == ["text 1"] * 50


@pytest.mark.parametrize(
    "other",
    [key(path="/?q=a"), key(language="zh-hans"), key(rights=frozenset({"may"})), key(revision="2")],
    ids=["address", "language", "rights", "revision"],
)
def test_what_differs_in_any_part_of_the_key_is_rendered_apart(other, clock):
    fragments, rendering = SharedFragments(clock=clock), Rendering()
    assert [fragments.get(key(), rendering), fragments.get(other, rendering)] == ["text 1", "text 2"]


def test_who_comes_while_it_is_rendered_waits_for_it(clock):
    fragments, rendering = SharedFragments(clock=clock), Rendering()
    may_finish, has_begun = threading.Event(), threading.Event()

    def slow() -> str:
        has_begun.set()
        assert may_finish.wait(60)
        return rendering()

    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(fragments.get, key(), slow)
        assert has_begun.wait(60)
        others = [pool.submit(fragments.get, key(), rendering) for _ in range(19)]
        wait_until(lambda: any(other.running() for other in others), what="a second request")
        may_finish.set()
        assert {first.result(60), *(other.result(60) for other in others)} == {"text 1"}


def test_an_error_is_everybody_s_who_waited_and_the_next_tries_again():
    fragments = SharedFragments()

    def broken() -> str:
        raise LookupError("gone")

    with pytest.raises(LookupError):
        fragments.get(key(), broken)
    assert fragments.get(key(), lambda: "back") == "back"


def test_a_fragment_expires(clock):
    fragments, rendering = SharedFragments(age_max_s=5, clock=clock), Rendering()
    fragments.get(key(), rendering)
    clock.now += 4.9
    assert fragments.get(key(), rendering) == "text 1"
    clock.now += 0.1
    assert fragments.get(key(), rendering) == "text 2"


def test_no_more_than_so_many_are_kept(clock):
    fragments, rendering = SharedFragments(count_max=2, clock=clock), Rendering()
    for path in ("/1", "/2", "/3"):
        fragments.get(key(path), rendering)
    assert fragments.get(key("/3"), rendering) == "text 3"
    assert fragments.get(key("/1"), rendering) == "text 4", "the oldest went"


def test_no_more_than_so_much_text_is_kept(clock):
    fragments, long = SharedFragments(chars_max=250, clock=clock), Rendering("x" * 98)
    for path in ("/1", "/2", "/3"):
        fragments.get(key(path), long)
    assert fragments.get(key("/2"), long).endswith(" 2")
    assert fragments.get(key("/1"), long).endswith(" 4")


def test_expired_fragments_free_their_text(clock):
    fragments, long = SharedFragments(age_max_s=5, chars_max=250, clock=clock), Rendering("x" * 98)
    for path in ("/1", "/2"):
        fragments.get(key(path), long)
    clock.now += 5
    for path in ("/3", "/4", "/3", "/4"):
        fragments.get(key(path), long)
    assert long.count == 4
