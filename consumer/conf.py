"""The app's Django settings; each has a default, so that a project of your own needs none.

MQADMIN_NAMESRV         name servers, "host:port;host:port" (from the environment, else 127.0.0.1:9876)
CONSUMER_LOOPS_QUEUE    Celery queue whose workers run consumer instances ("loops")
CONSUMER_JOBS_QUEUE     Celery queue of the supervision ("jobs")
"""

from __future__ import annotations

import os

from django.conf import settings

DEFAULT_NAMESRV = "127.0.0.1:9876"


def namesrv() -> str:
    return str(getattr(settings, "MQADMIN_NAMESRV", None) or os.environ.get("MQADMIN_NAMESRV") or DEFAULT_NAMESRV)


def loops_queue() -> str:
    return str(getattr(settings, "CONSUMER_LOOPS_QUEUE", "loops"))


def jobs_queue() -> str:
    return str(getattr(settings, "CONSUMER_JOBS_QUEUE", "jobs"))
