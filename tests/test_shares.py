"""Of quick tests' own way to run (`tests/support/shares.py`): each file is in one share, and every share counts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shares import ENDS_WITHIN_S, NO_TESTS, PROGRESS, Shares

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_each_file_is_in_one_share(count: int) -> None:
    shares = [Shares(own, count) for own in range(1, count + 1)]
    assert [file for file in FILES if sum(share.is_own(file) for share in shares) != 1] == []


def test_shares_are_about_the_same_size_and_stay_what_they_were() -> None:
    shares = [Shares(own, 3) for own in (1, 2, 3)]
    first, again = ([[file for file in FILES if share.is_own(file)] for share in shares] for _ in range(2))
    assert first == again
    sizes = [sum(file.stat().st_size for file in files) for files in first]
    assert max(sizes) - min(sizes) <= max(file.stat().st_size for file in FILES)


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/3/5", "a/3"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - argparse says the rest
        Shares.parse(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Has three files with a test each: one of them fails, one is slow."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow")
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_addoption, pytest_ignore_collect")
    (tmp_path / "test_a.py").write_text("def test_passes(): pass")
    (tmp_path / "test_b.py").write_text("def test_fails(): assert False")
    (tmp_path / "test_c.py").write_text("import pytest\n@pytest.mark.slow\ndef test_passes(): pass")
    return tmp_path


def run_shares(project: Path, *arguments: str, ends_within_s: float = ENDS_WITHIN_S) -> tuple[int, str]:
    run = f"run_shares(sys.argv[1:], 3, {ends_within_s})"
    program = f"import sys; from tests.support.shares import run_shares; sys.exit({run})"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-c", program, "-q", *arguments]
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


@pytest.mark.slow
def test_each_share_is_run_and_one_that_fails_fails_the_run(project: Path) -> None:
    code, output = run_shares(project)
    assert (code, output.count("1 passed"), output.count("1 failed")) == (1, 2, 1)
    assert "def test_fails" in output


@pytest.mark.slow
@pytest.mark.parametrize("color", ["no", "yes"])
def test_the_row_of_dots_of_each_share_is_known_for_one_also_in_colour(project: Path, color: str) -> None:
    _, output = run_shares(project, f"--color={color}")
    rows = [line for line in output.splitlines(keepends=True) if PROGRESS.fullmatch(line)]
    assert sorted(re.sub(r"\x1b\[\d*m", "", row).split()[0] for row in rows) == [".", ".", "F"]
    assert ("\x1b" in "".join(rows)) == (color == "yes")


@pytest.mark.slow
def test_a_share_without_a_test_that_is_selected_is_no_error_beside_one_that_has_some(project: Path) -> None:
    code, output = run_shares(project, "-m", "slow")
    assert (code, output.count("1 passed"), output.count("1 deselected")) == (0, 1, 2)
    assert run_shares(project, "-k", "nothing")[0] == NO_TESTS


@pytest.mark.slow
def test_a_share_that_does_not_end_is_ended_and_fails_the_run(project: Path) -> None:
    (project / "test_a.py").write_text("import threading\ndef test_hangs(): threading.Event().wait()")
    code, _ = run_shares(project, ends_within_s=3)
    assert code == 256 - signal.SIGABRT
