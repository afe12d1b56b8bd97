"""The app's Django settings; each has a default, so that a project of your own needs none.

MQADMIN_NAMESRV         name servers, "host:port;host:port" (from the environment, else 127.0.0.1:9876)
MQADMIN_CLUSTERS        further clusters, {"payments": "host:port;host:port"}: what `cluster=` of a listener names ({})
CONSUMER_LOOPS_QUEUE    Celery queue whose workers run consumer instances ("loops")
CONSUMER_JOBS_QUEUE     Celery queue of the supervision ("jobs")
CONSUMER_OFFSETS_FOLDER where broadcasting groups keep their offsets (~/.rocketmq_offsets); in a container, a volume
CONSUMER_ONCE_DAYS      for how long the keys of messages that are consumed once are kept (7)
CONSUMER_MIDDLEWARE     what wraps each call of a listener, dotted paths (consumer/middleware; database connections)
CONSUMER_FAILURE_TEXTS  whether why a message failed is told to the broker, in running info and in a table (True)
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from consumer.group_key import DEFAULT_CLUSTER

DEFAULT_NAMESRV = "127.0.0.1:9876"
# Longer than a message's retries (5 hours) and most outages, after which producers send again.
DEFAULT_ONCE_DAYS = 7
DEFAULT_MIDDLEWARE = ("consumer.middleware.connections.database_connections",)
CLUSTER_NAME_CHARS_MAX = 100
_CLUSTER_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{CLUSTER_NAME_CHARS_MAX}}}")


def namesrv(cluster: str = DEFAULT_CLUSTER) -> str:
    """Returns the name servers of a cluster. Raises ImproperlyConfigured for one that the settings do not name."""
    if cluster == DEFAULT_CLUSTER:
        return str(getattr(settings, "MQADMIN_NAMESRV", None) or os.environ.get("MQADMIN_NAMESRV") or DEFAULT_NAMESRV)
    known = clusters()
    if cluster not in known:
        names = ", ".join(known) or "none"
        raise ImproperlyConfigured(f"cluster {cluster!r} is not in the setting MQADMIN_CLUSTERS, which names: {names}")
    return known[cluster]


def clusters() -> Mapping[str, str]:
    """Returns the name servers of each cluster but the default one, by name.

    Raises ImproperlyConfigured for a name that is none, and for two names of the same servers: a group of both would
    be two consumers that share one group's offsets.
    """
    named = {str(name): str(servers) for name, servers in getattr(settings, "MQADMIN_CLUSTERS", {}).items()}
    names = {_addresses(namesrv()): "MQADMIN_NAMESRV"}
    for name, servers in named.items():
        if not _CLUSTER_NAME.fullmatch(name):
            raise ImproperlyConfigured(
                f"MQADMIN_CLUSTERS names a cluster {name!r}; letters, digits, - and _ make a name, at most"
                f" {CLUSTER_NAME_CHARS_MAX}"
            )
        other = names.setdefault(_addresses(servers), name)
        if other != name:
            raise ImproperlyConfigured(
                f"MQADMIN_CLUSTERS: {name!r} has the name servers of {other}, {servers}; give each cluster one name"
            )
    return named


def cluster_behind(servers: str) -> str | None:
    """Returns the name that the settings give the cluster behind these name servers; None when they give none."""
    addresses = _addresses(servers)
    if addresses == _addresses(namesrv()):
        return DEFAULT_CLUSTER
    return next((name for name, named in clusters().items() if _addresses(named) == addresses), None)


def _addresses(servers: str) -> frozenset[str]:
    return frozenset(word.strip() for word in servers.replace(",", ";").split(";") if word.strip())


def loops_queue() -> str:
    return str(getattr(settings, "CONSUMER_LOOPS_QUEUE", "loops"))


def jobs_queue() -> str:
    return str(getattr(settings, "CONSUMER_JOBS_QUEUE", "jobs"))


def offsets_folder() -> Path:
    return Path(getattr(settings, "CONSUMER_OFFSETS_FOLDER", None) or Path.home() / ".rocketmq_offsets")


def middleware_paths() -> list[str]:
    return list(getattr(settings, "CONSUMER_MIDDLEWARE", DEFAULT_MIDDLEWARE))


def once_kept_for() -> timedelta:
    """Returns how long the inbox keeps the keys of what was consumed. Raises ImproperlyConfigured."""
    days = getattr(settings, "CONSUMER_ONCE_DAYS", DEFAULT_ONCE_DAYS)
    if not isinstance(days, int | float) or isinstance(days, bool) or days <= 0:
        raise ImproperlyConfigured(f"CONSUMER_ONCE_DAYS is {days!r}; a number of days above 0 is needed")
    return timedelta(days=days)


def keeps_failure_texts() -> bool:
    return bool(getattr(settings, "CONSUMER_FAILURE_TEXTS", True))
