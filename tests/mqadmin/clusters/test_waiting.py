from __future__ import annotations

from mqadmin.clusters.waiting import PAIRS_MAX, noted, waiting_since_s


def seen(*pairs: tuple[int, int]) -> bytes:
    packed = b""
    for at_s, max_offset in pairs:
        packed = noted(packed, at_s, max_offset)
    return packed


def test_message_waits_at_least_since_the_first_observation_that_found_it() -> None:
    packed = seen((0, 100), (15, 140), (30, 180))
    assert waiting_since_s(packed, 99) == 0
    assert waiting_since_s(packed, 120) == 15
    assert waiting_since_s(packed, 140) == 30
    assert waiting_since_s(packed, 180) is None


def test_nothing_is_known_of_a_queue_that_was_never_seen() -> None:
    assert waiting_since_s(b"", 0) is None


def test_unchanged_end_is_not_noted_again() -> None:
    assert seen((0, 100), (15, 100)) == seen((0, 100))


def test_end_that_shrank_begins_a_new_history() -> None:
    assert seen((0, 100), (15, 3)) == seen((15, 3))


def test_full_history_stays_bounded_and_never_answers_too_early() -> None:
    pairs = [(step, step * 10) for step in range(1, 5 * PAIRS_MAX)]
    packed = seen(*pairs)
    assert len(packed) <= PAIRS_MAX * 12
    for at_s, max_offset in pairs[:-1]:
        since_s = waiting_since_s(packed, max_offset - 1)
        assert since_s is not None
        assert since_s >= at_s
