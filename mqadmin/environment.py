"""Reads environment variables into settings: pure functions from texts to values.

Database and Redis are embedded unless DATABASE_URL and REDIS_URL name others (docs/ARCHITECTURE.md, "Processes").
"""

from __future__ import annotations

import importlib.util
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from mqadmin.people.masking import MaskRule, read_rules
from mqadmin.people.roles import Role

# One writer at a time, and readers never wait: measured without a single "database is locked" under contention.
_SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA cache_size=-16000;"
        "PRAGMA mmap_size=134217728;PRAGMA temp_store=MEMORY;PRAGMA foreign_keys=ON;"
    ),
}

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
PORT_MAX = 65_535
WEB_DEFAULT = "127.0.0.1:8000"
TOKEN_CHARS_MIN = 16
REPLAY_APPROVALS = ("off", "mended", "all")


def database(url: str | None, folder: Path) -> dict[str, Any]:
    """Returns Django's DATABASES["default"]: SQLite in `folder`, or what `url` names."""
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(folder / "mqadmin.sqlite3"),
            "OPTIONS": dict(_SQLITE_OPTIONS),
            # A file for tests too: an in-memory database has other locks, and no WAL.
            "TEST": {"NAME": str(folder / "test.sqlite3")},
        }
    try:
        config: dict[str, Any] = dict(dj_database_url.parse(url))
    except ValueError as error:
        # Without the text itself: it may hold a password.
        raise ImproperlyConfigured("DATABASE_URL must read like postgres://user:password@host:5432/name") from error
    if config["ENGINE"].endswith("sqlite3"):
        config.setdefault("OPTIONS", {}).update(_SQLITE_OPTIONS)
    return config


def default_redis_url(folder: Path) -> str:
    return f"unix://{folder / 'redis.sock'}?db=0"


def celery_url(redis_url: str) -> str:
    """Returns a Redis address as Celery writes it: `redis+socket:///path?virtual_host=2` for `unix:///path?db=2`."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    number = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{parts.path}?virtual_host={number}"


def words(text: str | None) -> list[str]:
    """Splits a comma-separated list, without blanks and empty entries."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def apps(text: str | None) -> list[str]:
    """Returns the Django apps of MQADMIN_APPS. Raises ImproperlyConfigured naming one that Python doesn't find."""
    names = words(text)
    for name in names:
        if not _is_importable(name):
            raise ImproperlyConfigured(
                f"MQADMIN_APPS names {name!r}, which Python does not find: correct the name, or add its folder to "
                "PYTHONPATH"
            )
    return names


def _is_importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def web_address(text: str) -> tuple[str, int]:
    """Reads `host:port`; a bare port listens on 127.0.0.1. Raises ImproperlyConfigured."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
        raise ImproperlyConfigured(f"MQADMIN_WEB is {text!r}; it must be host:port, as in 127.0.0.1:8000")
    return host.strip("[]") or "127.0.0.1", int(port)


def count(name: str, text: str) -> int:
    """Reads a whole number above 0. Raises ImproperlyConfigured naming the variable."""
    if not text.isdecimal() or int(text) < 1:
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be a whole number above 0")
    return int(text)


def one_of(name: str, text: str, words: tuple[str, ...]) -> str:
    """Raises ImproperlyConfigured naming the variable and the words that it may be."""
    if text not in words:
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be one of {', '.join(words)}")
    return text


def token(name: str, text: str) -> str:
    """Reads a secret of TOKEN_CHARS_MIN characters at least, or "". Raises ImproperlyConfigured naming the variable."""
    if text and len(text) < TOKEN_CHARS_MIN:
        raise ImproperlyConfigured(f"{name} is shorter than {TOKEN_CHARS_MIN} characters: make it a longer random text")
    return text


def name_servers(text: str, variable: str = "MQADMIN_NAMESRV") -> str:
    """Reads `host:port`, several separated by `;`. Raises ImproperlyConfigured naming the variable."""
    for word in text.replace(",", ";").split(";"):
        host, _, port = word.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
            raise ImproperlyConfigured(
                f"{variable} is {text!r}; it must be host:port of a name server, several separated by ;"
            )
    return text


def clusters(text: str) -> dict[str, str]:
    """Reads `name=host:port;host:port`, several separated by `,`. Raises ImproperlyConfigured."""
    read: dict[str, str] = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, equals, servers = word.partition("=")
        if not equals or not name.strip() or name.strip() in read:
            raise ImproperlyConfigured(
                f"MQADMIN_CLUSTERS has {word!r}; it must be name=host:port;host:port, each name once, separated by ,"
            )
        read[name.strip()] = name_servers(servers.strip(), f"{name.strip()} of MQADMIN_CLUSTERS")
    return read


def log_level(text: str) -> str:
    """Raises ImproperlyConfigured naming the levels that there are."""
    level = text.upper()
    if level not in LOG_LEVELS:
        raise ImproperlyConfigured(f"MQADMIN_LOG_LEVEL is {text!r}; it must be one of {', '.join(LOG_LEVELS)}")
    return level


def allowed_hosts(web: str, further: list[str]) -> list[str]:
    """Returns the names under which the console answers: this machine's, where it listens, and MQADMIN_HOSTS."""
    host, _ = web_address(web)
    return list(dict.fromkeys(["localhost", "127.0.0.1", "[::1]", host, *further]))


def role(name: str, text: str) -> str:
    """A role, or "" for none. Raises ImproperlyConfigured naming the roles that there are."""
    if text and text not in set(Role):
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be empty or one of {', '.join(Role)}")
    return text


def masked(text: str) -> tuple[MaskRule, ...]:
    """The rules of MQADMIN_MASKED. Raises ImproperlyConfigured naming the one that is none."""
    try:
        return read_rules(text)
    except ValueError as error:
        raise ImproperlyConfigured(str(error)) from error


def host_of(url: str) -> str:
    """The host of an address; "" of none."""
    return urlsplit(url).hostname or ""


def openid_connect(url: str, name: str, *, client_id: str, secret: str) -> dict[str, Any]:
    """Django-allauth's SOCIALACCOUNT_PROVIDERS; empty without MQADMIN_OIDC_URL. Raises ImproperlyConfigured."""
    if not url:
        return {}
    if urlsplit(url).scheme not in ("http", "https") or not host_of(url):
        raise ImproperlyConfigured(f"MQADMIN_OIDC_URL is {url!r}; it must be the provider's http(s) address")
    if not client_id or not secret:
        raise ImproperlyConfigured("MQADMIN_OIDC_URL needs MQADMIN_OIDC_ID and MQADMIN_OIDC_SECRET, too")
    app = {
        "provider_id": "sso",
        "name": name,
        "client_id": client_id,
        "secret": secret,
        "settings": {"server_url": url},
    }
    return {"openid_connect": {"APPS": [app], "OAUTH_PKCE_ENABLED": True}}


def time_zone(text: str) -> str:
    """Returns the name of a zone that this machine knows."""
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ImproperlyConfigured(f"MQADMIN_TIME_ZONE is {text!r}; it must read like Europe/Berlin or UTC") from error
    return text


def replay_approval(text: str) -> str:
    """Returns which replays a second person approves."""
    if text not in REPLAY_APPROVALS:
        raise ImproperlyConfigured(
            f"MQADMIN_REPLAY_APPROVAL is {text!r}; it must be one of {', '.join(REPLAY_APPROVALS)}"
        )
    return text


def public_url(text: str) -> str:
    """Returns where people reach the console, without a "/" at the end."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"MQADMIN_URL is {text!r}; it must read like https://mq.example.org")
    return text.rstrip("/")


def networks(text: str) -> tuple[str, ...]:
    """Returns networks as texts: "127.0.0.0/8, fd00::/8"."""
    found = words(text)
    for one in found:
        try:
            ip_network(one)
        except ValueError as error:
            complaint = f"MQADMIN_ALERT_NETWORKS has {one!r}; a network reads like 127.0.0.0/8 or fd00::/8"
            raise ImproperlyConfigured(complaint) from error
    return tuple(found)


_MAIL_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


def mail(url: str) -> dict[str, Any]:
    """Returns Django's settings of the mail server; none where no url names one.

    smtp://host, smtp+starttls://user:password@host:587, smtps://user:password@host.
    """
    if not url:
        return {"EMAIL_HOST": ""}
    # Without the text itself: it may hold a password.
    complaint = "MQADMIN_MAIL must read like smtp+starttls://user:password@host:587"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(complaint) from error
    if parts.scheme not in _MAIL_PORTS or not parts.hostname:
        raise ImproperlyConfigured(complaint)
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or _MAIL_PORTS[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+starttls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
    }
