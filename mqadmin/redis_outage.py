"""A Redis that goes away and comes back, in the log: one line each, instead of every library's own complaints.

Celery, kombu, Channels and our own tasks each say again and again, some with tracebacks, that Redis does not answer.
`RedisOutage` is a filter of the log's handler: it holds such records back and has a thread ask Redis itself. The thread
says once that Redis is away and what goes on all the same, and once that it is back. Level DEBUG shows every record.

Records of listeners and of other people's tasks pass: a Redis that they use may be another.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from urllib.parse import urlsplit

# Who complains when Celery's or Channels' connection breaks; `celery.app.trace` does of tasks, anyone's.
_LOGGERS = (
    "beat",
    "celery.beat",
    "celery.worker",
    "channels_redis",
    "consumer.tasks",
    "broker.tasks",
    "django.channels",
    "django_celery_beat",
    "kombu",
    "mqadmin",
)
_TASK_LOGGER = "celery.app.trace"
_OUR_TASKS = ("mqadmin.", "consumer.", "broker.")
# kombu says these at CRITICAL, though the worker goes on: it gets the task once more when Redis is back.
_CRITICAL_BUT_GOES_ON = ("Couldn't ack ", "Couldn't reject ")
# A warning about a default of Celery 6, at every lost connection; tasks are acknowledged early here.
_WARNING_ABOUT_LATE_ACKS = "worker_cancel_long_running_tasks_on_connection_loss"

PROBE_INTERVAL_S = 1.0
# A machine with too much to do may take seconds to answer; then Redis is not away.
PROBE_TIMEOUT_S = 5.0
# Celery waits up to 30 s between two tries to connect: until then, complaints are about the outage that was.
SETTLED_AFTER_S = 40.0

logger = logging.getLogger("mqadmin.redis")


class RedisOutage(logging.Filter):
    """Holds complaints about Redis back, and says once that it is away and once that it is back.

    `probe` raises a Redis error while there is no answer; by default it sends PING to `url`.
    """

    _says = True

    def __init__(
        self,
        url: str,
        probe: Callable[[], object] | None = None,
        interval_s: float = PROBE_INTERVAL_S,
        settled_after_s: float = SETTLED_AFTER_S,
    ) -> None:
        super().__init__()
        self._where = _without_password(url)
        self._probe = probe or (lambda: _ping(url))
        self._interval_s = interval_s
        self._settled_after_s = settled_after_s
        self._begin()
        # The thread is not there in a forked process; its lock may be held.
        os.register_at_fork(after_in_child=self._begin)

    @classmethod
    def leave_to_worker(cls) -> None:
        """Says nothing in this process from now on, but goes on holding complaints back: its Celery worker says it."""
        cls._says = False

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._is_watching = False
        self._over_since_s = -self._settled_after_s

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "py.warnings" and _WARNING_ABOUT_LATE_ACKS in record.getMessage():
            return False
        if record.name == logger.name or _ends_process(record) or not _is_complaint(record):
            return True
        with self._lock:
            is_new = self._says and not self._is_watching
            self._is_watching |= is_new
        if is_new:
            threading.Thread(target=self._watch, name="redis outage", daemon=True).start()
        return logger.isEnabledFor(logging.DEBUG)

    def _watch(self) -> None:
        """Asks until Redis answers; says that it does not, and that it does."""
        began_s = time.monotonic()
        is_said = False
        while not self._answers():
            if not is_said:
                logger.warning(
                    "Redis (%s) does not answer: instances go on consuming, following and pages go on; new tasks, the"
                    " schedule and live updates wait until it is back",
                    self._where,
                )
                is_said = True
            time.sleep(self._interval_s)
        if is_said:
            logger.warning("Redis answers again after %.0f s", time.monotonic() - began_s)
        elif time.monotonic() - self._over_since_s > self._settled_after_s:
            logger.warning("a connection to Redis (%s) was lost; it answers, and is connected to again", self._where)
        self._over_since_s = time.monotonic()
        with self._lock:
            self._is_watching = False

    def _answers(self) -> bool:
        from redis import RedisError  # as in _errors_of_redis

        try:
            self._probe()
        except (RedisError, OSError):
            return False
        return True


def _ends_process(record: logging.LogRecord) -> bool:
    """Says whether the record may be a process's last: such a one is never held back."""
    return record.levelno >= logging.CRITICAL and not str(record.msg).startswith(_CRITICAL_BUT_GOES_ON)


def _is_complaint(record: logging.LogRecord) -> bool:
    """Says whether the record is about a connection to our Redis."""
    if record.name == _TASK_LOGGER:
        task = record.args.get("name", "") if isinstance(record.args, dict) else ""
        is_ours = str(task).startswith(_OUR_TASKS)
    else:
        is_ours = any(record.name == name or record.name.startswith(f"{name}.") for name in _LOGGERS)
    return is_ours and any(isinstance(error, _errors_of_redis()) for error in _errors(record))


@cache
def _errors_of_redis() -> tuple[type[Exception], ...]:
    """All processes have this filter; loading these would be most of the start of one without Redis, as the broker."""
    import redis  # see above
    from kombu.exceptions import OperationalError  # see above

    return redis.ConnectionError, redis.TimeoutError, OperationalError


def _errors(record: logging.LogRecord) -> Iterator[BaseException]:
    """Yields the exceptions that the record is about: with their causes, and those among its arguments."""
    found = [arg for arg in record.args if isinstance(arg, BaseException)] if isinstance(record.args, tuple) else []
    if record.exc_info and record.exc_info[1] is not None:
        found.append(record.exc_info[1])
    seen: set[int] = set()
    while found:
        error = found.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        found += [cause for cause in (error.__cause__, error.__context__) if cause is not None]


def _ping(url: str) -> None:
    import redis  # as in _errors_of_redis

    with redis.Redis.from_url(url, socket_timeout=PROBE_TIMEOUT_S, socket_connect_timeout=PROBE_TIMEOUT_S) as client:
        client.ping()


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts.path if parts.scheme == "unix" else parts.netloc.rpartition("@")[2]
