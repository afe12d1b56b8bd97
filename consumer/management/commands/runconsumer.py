"""`manage.py runconsumer GROUP`: one consumer instance in the foreground, for development."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from consumer import autoreload
from consumer.assembly import make_consumer
from consumer.conf import namesrv
from consumer.engine.push_consumer import PushConsumer
from consumer.listener import GroupSpec, registry


class Command(BaseCommand):
    help = "Runs one consumer instance of a group until Ctrl-C or SIGTERM, and commits its offsets at the end."
    requires_system_checks: list[str] = ["consumer"]  # noqa: RUF012 - those of pages would import every view

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "group", help="a group that the listeners of an installed app declare; group@cluster on a further cluster"
        )
        parser.add_argument("--autoreload", action="store_true", help="start it anew whenever the code changes")
        parser.add_argument("--namesrv", default=None, help="name servers, host:port;host:port (MQADMIN_NAMESRV)")

    def handle(self, *args: Any, **options: Any) -> None:
        spec = registry.groups.get(options["group"])
        if spec is None:
            raise CommandError(_unknown(options["group"]))
        if options["autoreload"] and not autoreload.is_child():
            autoreload.run_parent(self.stderr.write)
            # Said here: Ctrl-C may meet a child that has not begun yet.
            self.stdout.write(f"group {spec.key} stopped")
            return
        address = options["namesrv"] or namesrv(spec.cluster)
        self.stdout.write(f"group {spec.key} on {address}: {_topics(spec)}; Ctrl-C stops")
        self.stdout.flush()
        if options["autoreload"]:
            autoreload.run_child(lambda: make_consumer(spec, address))
            return
        asyncio.run(_run(make_consumer(spec, address)))
        self.stdout.write(f"group {spec.key} stopped")


async def _run(consumer: PushConsumer) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await consumer.start()
    await stop.wait()
    await consumer.stop()


def _topics(spec: GroupSpec) -> str:
    return ", ".join(f"{topic} ({listener.tags})" for topic, listener in spec.listeners.items())


def _unknown(group: str) -> str:
    known = ", ".join(registry.groups)
    if known:
        return f"no listener declares the group {group!r}; known are: {known}"
    return (
        f"no listener declares the group {group!r}, and no installed app declares any:"
        " name the app with your listeners module in MQADMIN_APPS"
    )
