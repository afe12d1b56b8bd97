"""`manage.py store check DIR` and `store show DIR`: a closed store verified, and looked into. No database, no Redis."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker.engine.config import BrokerConfig
from broker.engine.config_files import ConfigFileUnreadable
from broker.engine.schedule.level_history import LevelHistory
from broker.engine.schedule.levels import parse_levels
from broker.engine.settings import Settings
from broker.engine.store.errors import StoreError
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import RecoveryReport, StoreConfig
from remoting.complaints import ComplaintLog


class Command(BaseCommand):
    help = "Verifies the store of a broker that is not running, or shows what is in it."
    requires_system_checks: list[str] = []  # noqa: RUF012 - nothing of Django but its commands is used
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        check = actions.add_parser(
            "check",
            help="look at every bit of every record and at every queue entry; exit code 1 when one is wrong."
            " Opens the store as a broker's start does: damaged bytes are set aside, indexes are made again",
        )
        show = actions.add_parser("show", help="list topics, queues and offsets")
        for action in (check, show):
            action.add_argument("folder", type=Path, metavar="DIR", help="the broker's --store")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            store = _open(options["folder"])
        except (StoreError, ConfigFileUnreadable) as error:
            raise CommandError(str(error)) from error
        try:
            is_sound = self._check(store) if options["action"] == "check" else self._show(store)
        finally:
            store.close()
        if not is_sound:
            sys.exit(1)

    def _check(self, store: MessageStore) -> bool:
        report = store.verify()
        found = store.recovery
        self.stdout.write(f"{store.path}: {_how_it_opened(found)}")
        self.stdout.write(
            f"{report.record_count:,} records, {report.byte_count:,} bytes from {store.min_commit_log_offset:,} to"
            f" {store.max_commit_log_offset:,} of the commit log"
        )
        for damage in dict.fromkeys((*found.damages, *report.damages)):
            kept = f", kept as {damage.kept_as}" if damage.kept_as else ""
            self.stdout.write(
                f"damaged: {damage.byte_count:,} bytes at {damage.commit_log_offset:,}: {damage.reason}{kept}"
            )
        for problem in report.problems:
            self.stdout.write(f"wrong: {problem}")
        is_sound = report.is_sound and not found.damages
        self.stdout.write("the store is sound" if is_sound else "the store is NOT sound")
        return is_sound

    def _show(self, store: MessageStore) -> bool:
        topics = sorted(store.topics())
        size = store.max_commit_log_offset - store.min_commit_log_offset
        self.stdout.write(f"{store.path}: {size:,} bytes of commit log, {len(topics)} topics")
        for topic in topics:
            self.stdout.write(topic)
            for queue_id in store.queues(topic):
                low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
                self.stdout.write(f"   queue {queue_id:>4}: offsets {low:,} to {high:,}, {high - low:,} messages")
        return True


def _open(folder: Path) -> MessageStore:
    """Raises StoreError, ConfigFileUnreadable."""
    if not (folder / "store.json").exists():
        raise StoreError(f"there is no store in {folder}: give the folder that holds store.json")
    config = BrokerConfig(store=folder)
    Settings(config, ComplaintLog()).load()
    levels = LevelHistory(folder / "config", parse_levels(config.delay_levels))
    return MessageStore.open(folder, StoreConfig(delay_levels_at=levels.delays_ms_at))


def _how_it_opened(report: RecoveryReport) -> str:
    if report.was_clean:
        return "closed cleanly before"
    text = f"recovered after an abrupt end, {report.record_count:,} records from {report.verified_from:,} on"
    if report.torn is not None:
        text += (
            f"; an unfinished write of {report.torn.byte_count:,} bytes at {report.torn.commit_log_offset:,} was cut"
        )
    if report.rebuilt_indexes is not None:
        text += f"; the indexes were made again: {report.rebuilt_indexes}"
    return text
