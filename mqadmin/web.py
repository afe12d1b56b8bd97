"""The web process on its own: `python -m mqadmin.web` serves the console on MQADMIN_WEB until SIGTERM or SIGINT.

uvicorn with the options that the console wants, and connections to PostgreSQL in a pool. A stop waits GRACE_S for
answers under way, and exits with 0; uvicorn's own command would end by the signal.

Behind a reverse proxy, uvicorn believes the headers X-Forwarded-For and -Proto of the addresses in FORWARDED_ALLOW_IPS
(127.0.0.1), which is uvicorn's own variable.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import uvicorn
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from mqadmin import environment
from mqadmin.answering_sockets import PING_INTERVAL_S, PING_TIMEOUT_S, AnsweringWebSocket
from mqadmin.garbage import look_less_often

GRACE_S = 3
# Connections that this process keeps: it answers from several threads. Only here: a Celery worker forks, and a pool
# that two processes share ends in closed connections.
POOL = {"min_size": 1, "max_size": 8, "timeout": 10}


def main() -> None:
    """Serves until a signal. Exits with 1 and one line when a setting is wrong or MQADMIN_WEB cannot be listened on."""
    look_less_often()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqadmin.settings")
    # WhiteNoise's static files are small, and read at once.
    warnings.filterwarnings("ignore", "StreamingHttpResponse must consume synchronous iterators")
    try:
        host, port = environment.web_address(os.environ.get("MQADMIN_WEB", environment.WEB_DEFAULT))
        pool_connections(connections.settings)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal that stopped it once more at its end; by then it has had its effect.
        signal.signal(number, lambda *_: None)
    config = uvicorn.Config(
        "mqadmin.asgi:application",
        host=host,
        port=port,
        lifespan="off",
        access_log=False,
        log_level="warning",
        log_config=None,
        ws=AnsweringWebSocket,
        ws_ping_interval=PING_INTERVAL_S,
        ws_ping_timeout=PING_TIMEOUT_S,
        # Regions are compressed once for all their viewers (live/regions.py), and the rest is small.
        ws_per_message_deflate=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = uvicorn.Server(config)
    server.run()
    if not server.started:
        sys.exit(f"the console cannot listen on {host}:{port}; set MQADMIN_WEB to another host:port")


def pool_connections(databases: Mapping[str, dict[str, Any]]) -> None:
    """Has Django keep the connections to these databases in a pool, where they are PostgreSQL's and no URL says how."""
    for database in databases.values():
        if database["ENGINE"].endswith("postgresql"):
            database["OPTIONS"].setdefault("pool", dict(POOL))


if __name__ == "__main__":
    main()
