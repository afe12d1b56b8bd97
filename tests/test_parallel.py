"""Of a parallel run's shares (`tests/support/parallel.py`): a file that no worker took would be tested by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.parallel import Shares

FILES = sorted(Path(__file__).parent.rglob("test_*.py"))


@pytest.mark.parametrize("workers", [1, 2, 3, 16])
def test_each_file_is_in_the_share_of_one_worker(workers: int) -> None:
    shares = [Shares(workers, own) for own in range(workers)]
    assert [file for file in FILES if sum(share.is_own(file) for share in shares) != 1] == []


def test_shares_are_about_the_same_size_and_stay_what_they_were() -> None:
    shares = [Shares(3, own) for own in range(3)]
    first, again = ([[file for file in FILES if share.is_own(file)] for share in shares] for _ in range(2))
    assert first == again
    sizes = [sum(file.stat().st_size for file in files) for files in first]
    assert max(sizes) - min(sizes) <= max(file.stat().st_size for file in FILES)
