"""What the environment says, read into settings: pure functions from texts to values.

Database and Redis are embedded unless DATABASE_URL and REDIS_URL name others (docs/ARCHITECTURE.md, "Processes").
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import dj_database_url

# One writer at a time, and readers never wait: measured without a single "database is locked" under contention.
_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA cache_size=-16000;"
        "PRAGMA mmap_size=134217728;PRAGMA temp_store=MEMORY;PRAGMA foreign_keys=ON;"
    ),
}
# Connections that the web process keeps: it answers from several threads. Only there: a Celery worker forks, and a pool
# that two processes share ends in closed connections.
_POOL = {"min_size": 1, "max_size": 8, "timeout": 10}


def database(url: str | None, folder: Path, *, is_pooled: bool = False) -> dict[str, Any]:
    """Django's DATABASES["default"]: SQLite in `folder`, or what `url` names."""
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(folder / "mqadmin.sqlite3"),
            "OPTIONS": dict(_SQLITE_OPTIONS),
            # A file for tests too: an in-memory database has other locks, and no WAL.
            "TEST": {"NAME": str(folder / "test.sqlite3")},
        }
    config: dict[str, Any] = dict(dj_database_url.parse(url))
    options = config.setdefault("OPTIONS", {})
    if config["ENGINE"].endswith("sqlite3"):
        options.update(_SQLITE_OPTIONS)
    elif is_pooled and config["ENGINE"].endswith("postgresql"):
        options.setdefault("pool", dict(_POOL))
    return config


def default_redis_url(folder: Path) -> str:
    return f"unix://{folder / 'redis.sock'}?db=0"


def celery_url(redis_url: str) -> str:
    """Celery's way of writing a Redis address: `unix:///path?db=2` is `redis+socket:///path?virtual_host=2` there."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    number = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.path}?virtual_host={number}"


def words(text: str | None) -> list[str]:
    """A comma-separated list without blanks and empty entries."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def web_address(text: str) -> tuple[str, int]:
    """`host:port`; a bare port listens on 127.0.0.1. Raises ValueError."""
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def allowed_hosts(web: str, further: list[str]) -> list[str]:
    """Under which names the console answers: this machine's, where it listens, and those it was told."""
    host, _ = web_address(web)
    return list(dict.fromkeys(["localhost", "127.0.0.1", "[::1]", host, *further]))
