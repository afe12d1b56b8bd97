"""What holds for every test: no error swallowed by an event loop, no process left behind, in CI none skipped."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from django.conf import settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker

from mqadmin.redis_outage import RedisOutage
from tests.support import parallel, shares
from tests.support.flushing import flushable_database
from tests.support.migrated_database import migrated_once
from tests.support.spark import small_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A busy machine is no failure of what is tested; pytest's own time-out ends what hangs. `make check` takes "quick".
for _profile, _examples in {"quick": 10, "daily": 30, "torture": 1_000}.items():
    hypothesis_settings.register_profile(
        _profile, deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=_examples
    )
hypothesis_settings.load_profile("torture" if os.environ.get("TORTURE") else "daily")

# Some 50 MB at the most; as often as Python's own 700 it took a sixteenth of the suite's time.
GC_AFTER_OBJECTS = 50_000
# What the tests of each scope of a parallel run use of Apache's; it sorts them by that, and ends it by that.
USES = pytest.StashKey[dict[str, parallel.Uses]]()
# Long enough for a stopped process to be reaped, short enough to see one that stays.
CHILDREN_GONE_WITHIN_S = 60.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a skipped test into a failed one where CI=true: there, everything that a test needs must be installed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI must not: {report.longrepr[2]}"
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        shares.OPTION, type=shares.Shares.parse, help='which files to read: "1/3", the first of three shares'
    )


def pytest_configure(config: pytest.Config) -> None:
    """Spares tests slow password hashes, waits for the disk, and a list of all static files for each client."""
    gc.disable()
    settings.WHITENOISE_AUTOREFRESH = True
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the tests of a parallel run in the order in which they are to run; marks those that use the database."""
    if hasattr(config, "workerinput"):
        uses = config.stash[USES] = parallel.uses(items)
        scopes = {item: parallel.scope_of(item.nodeid) for item in items}
        items.sort(key=lambda item: parallel.sort_key(scopes[item], uses[scopes[item]]))
    for item in items:
        # All fixtures of pytest-django that let a test near the database make it first.
        if item.get_closest_marker("django_db") or "django_db_setup" in getattr(item, "fixturenames", ()):
            item.add_marker("database")


def pytest_collection_finish() -> None:
    """Spares the garbage collector the thousands of tests, which stay to the end; it looks at the rest less often."""
    gc.freeze()
    gc.set_threshold(GC_AFTER_OBJECTS, 10, 10)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Collects what tests left once, so that pytest, which does so five times at its end, finds little to look at."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    return parallel.workers()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> parallel.FilesTogether:
    return parallel.FilesTogether(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Generator[None, bool | None, bool | None]:
    """Leaves the files of other shares unread."""
    is_ignored = yield
    if config.option.share is None or is_ignored or not fnmatch(collection_path.name, "test_*.py"):
        return is_ignored
    return not config.option.share.is_own(collection_path)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Ends Apache's brokers, and its clients, once this worker has come to the tests that don't use them."""
    stash = item.config.stash
    if nextitem is None or USES not in stash:
        return
    next_uses = stash[USES][parallel.scope_of(nextitem.nodeid)]
    for kind, ending in stash.get(parallel.ENDING, {}).items():
        if kind < next_uses:
            ending.close()


class _Errors(logging.Handler):
    """Keeps what asyncio reports of exceptions that nobody awaited."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        self.texts.append(text)


@pytest.fixture(autouse=True)
def _no_swallowed_errors() -> Iterator[None]:
    """asyncio only logs an exception in a callback or a forgotten task; here it fails the test."""
    errors = _Errors()
    logger = logging.getLogger("asyncio")
    logger.addHandler(errors)
    try:
        yield
    finally:
        logger.removeHandler(errors)
    assert not errors.texts, "the event loop swallowed errors:\n" + "\n".join(errors.texts)


@pytest.fixture(scope="session", autouse=True)
def _no_process_left_behind() -> Iterator[None]:
    """Runs last of all session fixtures: what is still a child of ours then was forgotten."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    _, alive = psutil.wait_procs(left, timeout=CHILDREN_GONE_WITHIN_S)
    described = [f"{child.pid} {' '.join(child.cmdline())[:200]}" for child in alive if child.is_running()]
    for child in alive:
        child.kill()
    assert not described, "processes left behind:\n" + "\n".join(described)


@pytest.fixture(scope="session", autouse=True)
def _no_watch_of_redis() -> None:
    """Takes RedisOutage off the log: one complaint has it ask for Redis in a thread that outlives its test."""
    for handler in logging.getLogger().handlers:
        handler.filters = [one for one in handler.filters if not isinstance(one, RedisOutage)]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all tests that compute with Spark: starting it takes longer than most of them, and a process has one."""
    with small_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> Iterator[None]:
    """Runs before the test database is made: the workers of a parallel run share one migration."""
    with migrated_once():
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Lets the tests' own clean-up empty the audit, which refuses every deletion."""
    restoring = ExitStack()
    with django_db_blocker.unblock():
        restoring.enter_context(flushable_database())
    yield
    with django_db_blocker.unblock():
        restoring.close()
