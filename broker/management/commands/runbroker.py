"""`manage.py runbroker`: name server and broker in the foreground. Needs neither database nor Redis."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import signal
import socket
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from broker.engine.config import BROKER_PORT, NAMESRV_PORT, BrokerConfig
from broker.engine.config_files import ConfigFileUnreadable, ConfigFileUnwritable
from broker.engine.retention.rules import check_hours
from broker.engine.runtime import BrokerRuntime
from broker.engine.store.errors import StoreError
from remoting.server import ListenError
from remoting.wire.errors import MessageError
from remoting.wire.names import check_topic

PORT_MAX = 65_535
_DAY_MS = 86_400_000
# Settings that can also be changed at run time, by RocketMQ's names; an option given here takes precedence.
_SETTINGS = {
    "transactionTimeOut": "transaction_timeout_ms",
    "transactionCheckInterval": "transaction_check_interval_ms",
    "transactionCheckMax": "transaction_check_max",
    "fileReservedTime": "file_reserved_hours",
    "deleteWhen": "delete_when",
    "diskMaxUsedSpaceRatio": "disk_clean_percent",
    "diskSpaceCleanForciblyRatio": "disk_force_percent",
    "diskSpaceWarningLevelRatio": "disk_full_percent",
}


class Command(BaseCommand):
    help = "Runs the name server and broker on this machine until Ctrl-C or SIGTERM."
    requires_system_checks: list[str] = []  # noqa: RUF012 - nothing of Django but its commands is used
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
        parser.add_argument("--advertise", help="address given to clients (that of --host)")
        parser.add_argument("--port", type=_port, default=BROKER_PORT, help="broker port (10911); 0 takes a free one")
        parser.add_argument("--namesrv-port", type=_port, default=NAMESRV_PORT, help="name server port (9876)")
        parser.add_argument("--cluster", type=_name, default="local", help="name of the cluster (local)")
        parser.add_argument("--name", type=_name, default="broker-a", help="name of the broker (broker-a)")
        parser.add_argument("--store", type=Path, help="folder of the store (MQADMIN_DATA/store)")
        parser.add_argument(
            "--flush", choices=("sync", "async"), default="sync",
            help="sync: acknowledged when on the disk; async: a power cut may lose the last half second (sync)",
        )  # fmt: skip
        parser.add_argument(
            "--scheduler", choices=("internal", "celery"), default="internal",
            help="what drives delayed delivery: this process, or Celery workers of the queue scheduler (internal)",
        )  # fmt: skip
        parser.add_argument(
            "--transaction-timeout", type=_milliseconds, metavar="SECONDS", dest="transaction_timeout_ms",
            help="time after which a producer is asked about a transaction that it has not ended (6)",
        )  # fmt: skip
        parser.add_argument(
            "--transaction-check-interval", type=_milliseconds, metavar="SECONDS",
            dest="transaction_check_interval_ms", help="time between two such checks (30)",
        )  # fmt: skip
        parser.add_argument(
            "--transaction-check-max",
            type=_count,
            metavar="TIMES",
            help="checks after which a transaction is given up (15)",
        )
        parser.add_argument(
            "--file-reserved-hours", type=_count, metavar="HOURS",
            help="time for which messages are kept at least; whole segments of the commit log are deleted (72)",
        )  # fmt: skip
        parser.add_argument(
            "--delete-when",
            type=_hours,
            metavar="HH;HH",
            help="hours of the day at which older segments are deleted (04)",
        )
        parser.add_argument(
            "--disk-clean-percent", type=_percent, metavar="PERCENT",
            help="disk usage from which they are deleted at any hour (75)",
        )  # fmt: skip
        parser.add_argument(
            "--disk-force-percent", type=_percent, metavar="PERCENT",
            help="disk usage from which the oldest segments are deleted whatever their age (85)",
        )  # fmt: skip
        parser.add_argument(
            "--disk-full-percent",
            type=_percent,
            metavar="PERCENT",
            help="disk usage from which messages are refused (90)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        config = BrokerConfig(
            store=(options["store"] or Path(settings.MQADMIN_DATA) / "store").absolute(),
            host=options["host"],
            advertise_host=_advertised(options["advertise"] or options["host"]),
            port=options["port"],
            namesrv_port=options["namesrv_port"],
            cluster=options["cluster"],
            name=options["name"],
            flush=options["flush"],
            scheduler=options["scheduler"],
            **_given(options),
        )
        _allow_open_files()
        logging.getLogger().setLevel(logging.DEBUG if options["verbosity"] > 1 else logging.INFO)
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._run(config))
        except (StoreError, ConfigFileUnreadable, ConfigFileUnwritable, ListenError) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error.filename or config.store}: {error.strerror or error}") from error

    async def _run(self, config: BrokerConfig) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        runtime = BrokerRuntime(config)
        try:
            await runtime.start()
            self.stdout.write(_ready_line(runtime.config))
            self.stdout.flush()
            await stop.wait()
        finally:
            await runtime.stop()


def _allow_open_files() -> None:
    """Raises the limit of open files to the hard limit: each client and each queue in use needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _ready_line(config: BrokerConfig) -> str:
    return f"broker ready: namesrv {config.advertise_host}:{config.namesrv_port} broker {config.address}"


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Returns config fields for the options that were given; the others may have been changed at run time."""
    given = {name: option for name, option in _SETTINGS.items() if options[option] is not None}
    fields: dict[str, Any] = {option: options[option] for option in given.values()}
    return fields | {"given": frozenset(given)} if given else {}


def _hours(text: str) -> str:
    """Raises ArgumentTypeError."""
    try:
        return check_hours(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text}: {error}") from error


def _percent(text: str) -> int:
    """Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdecimal() or not 10 <= int(text) <= 100:
        raise ArgumentTypeError(f"{text} is no percentage: give a number from 10 to 100")
    return int(text)


def _milliseconds(text: str) -> int:
    """Converts seconds. Raises ArgumentTypeError."""
    try:
        milliseconds = int(float(text) * 1000)
    except (ValueError, OverflowError):
        milliseconds = -1
    if not 0 < milliseconds <= _DAY_MS:
        raise ArgumentTypeError(f"{text} is no time: give seconds, a day at most")
    return milliseconds


def _count(text: str) -> int:
    """Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise ArgumentTypeError(f"{text} is no count: give a number from 0 to 999999")
    return int(text)


def _port(text: str) -> int:
    """Raises ArgumentTypeError: uvloop takes 75536 as port 10000."""
    if not text.isascii() or not text.isdecimal() or int(text) > PORT_MAX:
        raise ArgumentTypeError(f"{text} is no port: give a number from 0 to {PORT_MAX}")
    return int(text)


def _name(text: str) -> str:
    """Raises ArgumentTypeError: there are topics named after cluster and broker."""
    try:
        check_topic(text)
    except MessageError as error:
        raise ArgumentTypeError(f"a topic has this name, and {error}") from error
    return text


def _advertised(host: str) -> str:
    """Returns the IPv4 address of `host`, resolved once: message ids contain its four bytes. Raises CommandError."""
    try:
        address = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise CommandError(f"{host} has no IPv4 address: give one with --advertise") from error
    if ipaddress.ip_address(address).is_unspecified:
        raise CommandError(
            f"clients cannot connect to {host}: give the address under which they reach this machine by --advertise"
        )
    return str(address)


def _loop_factory() -> Any:
    """Returns uvloop's factory where it is installed, None for asyncio's own."""
    try:
        import uvloop  # optional: a little faster
    except ImportError:
        return None
    return uvloop.new_event_loop
