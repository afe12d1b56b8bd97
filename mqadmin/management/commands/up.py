"""`manage.py up`: every process of an install on this machine, until Ctrl-C or SIGTERM.

It runs as long as they do and only looks after them, so it loads no apps (`mqadmin/command.py`): what needs the models
before all else is done by `manage.py prepare`, in a process that ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from mqadmin.environment import web_address
from mqadmin.reports.installed import missing_packages
from mqadmin.supervision.fork_server import ForkServer
from mqadmin.supervision.log import Log
from mqadmin.supervision.processes import STOP_ORDER, Install, processes
from mqadmin.supervision.redis_server import NoRedis
from mqadmin.supervision.supervisor import SETTLE_S, StartFailed, Supervisor

DEMO_APP = "examples.shop"
BROKER_PORT = 10911


class Command(BaseCommand):
    help = "Starts broker, console, workers and what they need on this machine; Ctrl-C stops all."
    requires_system_checks: list[str] = []  # noqa: RUF012 - `prepare` checks, when the ports are known to be free
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="with the example shop's listeners and traffic")
        parser.add_argument("--broker-port", type=int, default=BROKER_PORT, help="the broker's port (10911)")
        parser.add_argument("--no-broker", action="store_true", help="MQADMIN_NAMESRV names brokers of one's own")

    def handle(self, *args: Any, **options: Any) -> None:
        install = self._install(with_traffic=options["demo"], **options)
        lock = _lock(install.data)
        try:
            _check_port_is_free(install.web_host, install.web_port)
            asyncio.run(self._run(install))
        finally:
            os.close(lock)

    def _install(self, *, with_traffic: bool, broker_port: int, no_broker: bool, **_: Any) -> Install:
        if with_traffic and DEMO_APP not in settings.MQADMIN_APPS:
            # Children read the environment; so do the settings of this process, hence it starts anew.
            _start_again_with_app(DEMO_APP)
        host, port = web_address(settings.MQADMIN_WEB)
        has_own_redis = bool(os.environ.get("REDIS_URL"))
        return Install(
            base_dir=Path(settings.BASE_DIR),
            data=Path(settings.MQADMIN_DATA),
            redis_socket=None if has_own_redis else Path(settings.MQADMIN_DATA) / "redis.sock",
            redis_url=settings.REDIS_URL,
            web_host=host,
            web_port=port,
            instances=settings.MQADMIN_INSTANCES,
            runs_broker=not no_broker,
            namesrv=settings.MQADMIN_NAMESRV,
            broker_port=broker_port,
            with_traffic=with_traffic,
            with_reports=not missing_packages(),
            forks=settings.MQADMIN_FORKS,
            logs_json=settings.MQADMIN_LOG_LINES == "json",
        )

    async def _run(self, install: Install) -> None:
        log = Log(is_json=install.logs_json)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        fork_server = ForkServer(install.fork_socket) if install.fork_socket else None
        try:
            supervisor = Supervisor(processes(install), STOP_ORDER, log.line, fork_server=fork_server)
        except NoRedis as error:
            raise CommandError(str(error)) from error
        try:
            await _start_or_stop(supervisor, stop)
            if not stop.is_set():
                log.line("up", f"the console is at http://{install.web_host}:{install.web_port}/ (Ctrl-C stops all)")
                await stop.wait()
            log.line("up", "stopping")
        except StartFailed as error:
            raise CommandError(str(error)) from error
        finally:
            await supervisor.stop()
            if install.fork_socket is not None:
                install.fork_socket.unlink(missing_ok=True)
        log.line("up", "all stopped")


async def _start_or_stop(supervisor: Supervisor, stop: asyncio.Event) -> None:
    """Starts everything, unless `stop` comes first. Raises StartFailed."""
    starting = asyncio.create_task(supervisor.start(), name="start-children")
    stopping = asyncio.create_task(stop.wait(), name="wait-for-stop")
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    elif (error := starting.exception()) is not None and not await _is_to_stop(stop):
        raise error


async def _is_to_stop(stop: asyncio.Event) -> bool:
    """Tells whether all is to stop: a child may have ended by the same signal that is on its way to this process."""
    await asyncio.wait({asyncio.ensure_future(stop.wait())}, timeout=SETTLE_S)
    return stop.is_set()


def _lock(data: Path) -> int:
    """Locks the folder itself, as long as this process lives and without a file. Raises CommandError."""
    descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise CommandError(
            f"another `manage.py up` runs on {data}: stop it, or set MQADMIN_DATA to another folder"
        ) from error
    return descriptor


def _check_port_is_free(host: str, port: int) -> None:
    """Raises CommandError where the port is taken; uvicorn's own message would be one log line among many."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"the console cannot listen on {host}:{port}: {error.strerror}; set MQADMIN_WEB to another host:port"
            ) from error


def _start_again_with_app(app: str) -> None:
    apps = ",".join([*settings.MQADMIN_APPS, app])
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MQADMIN_APPS": apps})  # noqa: S606
