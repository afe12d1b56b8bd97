"""The log while Redis is away: one line when it goes, one when it is back, and nothing of others held back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import billiard
import pytest
import redis
from celery.utils.log import get_logger
from kombu.message import Message

from mqadmin.celery import leave_lines_about_redis_to_worker
from mqadmin.redis_outage import RedisOutage, logger
from tests.support.forked import exit_code_of
from tests.support.waiting import wait_until


class Redis:
    """Answers, or not."""

    def __init__(self) -> None:
        self.is_up = False
        self.asked = threading.Event()

    def probe(self) -> None:
        self.asked.set()
        if not self.is_up:
            raise redis.ConnectionError("Error 111 connecting to redis:6379. Connection refused.")


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        # An earlier test may have made the filter of the settings look for its own Redis, which is not there.
        self._threads_before = set(threading.enumerate())

    def is_settled(self) -> bool:
        """Says whether no thread asks this test's Redis any more."""
        threads = set(threading.enumerate()) - self._threads_before
        return not any(thread.name == "redis outage" for thread in threads)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def server() -> Redis:
    return Redis()


@pytest.fixture
def lines(server: Redis) -> Iterator[Lines]:
    handler = Lines()
    outage = RedisOutage("redis://user:secret@redis:6379/0", server.probe, interval_s=0.01)
    handler.addFilter(outage)
    root = logging.getLogger()
    # The handler of the settings has such a filter, too, which asks for a real Redis.
    others, root.handlers = root.handlers, [handler]
    try:
        yield handler
    finally:
        server.is_up = True
        wait_until(handler.is_settled)
        root.handlers = others


def complain(name: str) -> None:
    """As Celery does: with the exception among the arguments, or as a traceback."""
    try:
        raise OSError(111, "Connection refused") from None
    except OSError as error:
        try:
            raise redis.ConnectionError("lost") from error
        except redis.ConnectionError as lost:
            logging.getLogger(name).error("consumer: Cannot connect to %s: %s.", "redis://redis", lost)
            logging.getLogger(name).exception("Unexpected exception in receive task")


def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(server: Redis, lines: Lines) -> None:
    for name in ("celery.worker.consumer.consumer", "channels_redis.pubsub", "celery.beat", "mqadmin.live.events"):
        complain(name)
    wait_until(lambda: lines.texts)
    complain("celery.worker.consumer.consumer")
    server.is_up = True
    wait_until(lambda: len(lines.texts) == 2)
    complain("celery.worker.consumer.consumer")  # one that had not connected again yet
    wait_until(lines.is_settled)
    away, back = lines.texts
    assert away.startswith("Redis (redis:6379) does not answer: instances go on consuming")
    assert "secret" not in away
    assert back.startswith("Redis answers again after")


def test_a_lost_connection_to_a_redis_that_answers_is_one_line(server: Redis, lines: Lines) -> None:
    server.is_up = True
    complain("celery.worker.consumer.consumer")
    wait_until(lambda: lines.texts)
    complain("celery.worker.consumer.consumer")
    wait_until(lines.is_settled)
    (line,) = lines.texts
    assert "was lost; it answers" in line


def test_what_is_not_about_our_redis_is_said_as_it_is(server: Redis, lines: Lines) -> None:
    complain("shop.listeners")
    logging.getLogger("celery.worker").error("out of disk: %s", OSError(28, "No space left"))
    logging.getLogger("celery.app.trace").error(
        "Task %(name)s raised: %(exc)s", {"name": "shop.tasks.count", "exc": "ConnectionError"}
    )
    assert len(lines.texts) == 4
    assert not server.asked.is_set()


def test_what_ends_a_process_is_never_held_back(server: Redis, lines: Lines) -> None:
    logging.getLogger("celery.worker").critical("Unrecoverable error: %r", redis.ConnectionError("lost"))
    assert len(lines.texts) == 1


@pytest.mark.parametrize("settled", ["ack", "reject"])
def test_a_task_that_could_not_be_settled_is_a_complaint(server: Redis, lines: Lines, settled: str) -> None:
    """kombu's CRITICAL: the worker goes on."""

    class GoneChannel:
        no_ack_consumers = None

        def _raise(self, *args: object, **options: object) -> None:
            raise redis.ConnectionError("lost")

        basic_ack = basic_reject = _raise

    message = Message(channel=GoneChannel(), delivery_tag="98957782", body="{}")
    settle = {"ack": message.ack_log_error, "reject": message.reject_log_error}[settled]
    settle(get_logger("celery.worker.consumer.consumer"), (redis.ConnectionError,))
    wait_until(lambda: lines.texts)
    server.is_up = True
    wait_until(lines.is_settled)
    away, back = lines.texts
    assert away.startswith("Redis (redis:6379) does not answer")
    assert back.startswith("Redis answers again after")


def test_debug_shows_every_complaint(server: Redis, lines: Lines) -> None:
    logger.setLevel(logging.DEBUG)
    try:
        complain("celery.beat")
    finally:
        logger.setLevel(logging.NOTSET)
    assert "consumer: Cannot connect to redis://redis: lost." in lines.texts


def test_a_forked_process_watches_for_itself(server: Redis, lines: Lines, tmp_path: Path) -> None:
    complain("celery.beat")
    assert server.asked.wait(60)
    said = tmp_path / "said"

    def watch() -> None:
        lines.texts.clear()
        complain("celery.beat")
        wait_until(lambda: lines.texts)
        said.write_text(lines.texts[0])

    assert exit_code_of(watch) == 0
    assert said.read_text().startswith("Redis (redis:6379) does not answer")


@pytest.mark.parametrize(("process", "lines_count"), [("ForkPoolWorker-1", 0), ("MainProcess", 1)])
def test_a_process_of_a_workers_pool_leaves_the_lines_to_the_worker(
    server: Redis, lines: Lines, monkeypatch: pytest.MonkeyPatch, process: str, lines_count: int
) -> None:
    monkeypatch.setattr(RedisOutage, "_says", True)
    monkeypatch.setattr(billiard, "current_process", lambda: SimpleNamespace(name=process))
    leave_lines_about_redis_to_worker()
    server.is_up = True
    complain("mqadmin.live.events")
    wait_until(lines.is_settled)
    assert len(lines.texts) == lines_count
