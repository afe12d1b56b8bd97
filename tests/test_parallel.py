"""Of a parallel run (`tests/support/parallel.py`): each file is in one share, and Apache's servers end in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.parallel import TOGETHER, Shares, is_after_apache, sort_key

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


# None of them uses Apache's servers.
OTHERS = ("tests/mqadmin/test_postgres.py", "tests/journeys/test_up.py", "tests/crash/test_a.py", "tests/test_docs.py")


def test_apaches_servers_are_ended_after_the_groups_and_all_files_that_use_them() -> None:
    groups = [f"{beginning}x.py::test" for _, (beginning, *_more) in TOGETHER]
    apache = sort_key("tests/broker/test_a.py::test", is_apache=True)
    assert not is_after_apache("tests/broker/test_a.py::test", is_apache=True)
    assert not [one for one in groups if is_after_apache(one, is_apache=False)]
    assert all(sort_key(one, is_apache=False) < apache for one in groups)
    assert all(is_after_apache(f"{other}::test", is_apache=False) for other in OTHERS)
