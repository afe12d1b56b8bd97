"""Shows what waits in the outbox and what was given up; lets that be sent again.

manage.py outbox                       how many wait, since when, and why the failed ones failed
manage.py outbox --retry all           sends what was given up again
manage.py outbox --retry 7F00…0001     only that message; the option may be repeated
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Count, Min

from consumer.outbox.delivery import retry
from consumer.outbox.models import OutboxMessage, OutboxState
from consumer.outbox.settings import outbox_settings

# Failed and retried messages that are listed by name.
LISTED_MAX = 50
ALL = "all"


class Command(BaseCommand):
    help = "Shows what waits in the outbox and what was given up; --retry sends that again."
    requires_system_checks: list[str] = ["consumer"]  # noqa: RUF012 - those of pages would import every view

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--retry", action="append", metavar="ID", help='a message id, or "all"; may be repeated')

    def handle(self, *_: Any, **options: Any) -> None:
        for using in outbox_settings().databases:
            if options["retry"]:
                self._retry(using, options["retry"])
            else:
                self._show(using)

    def _retry(self, using: str, ids: list[str]) -> None:
        count = retry(using, None if ALL in ids else ids)
        if not count:
            raise CommandError(f"database {using}: none of these was given up")
        self.stdout.write(f"database {using}: {count} to be sent again")

    def _show(self, using: str) -> None:
        rows = OutboxMessage.objects.using(using)
        counts = dict(rows.values_list("state").annotate(count=Count("pk")))
        oldest = rows.filter(state=OutboxState.PENDING).aggregate(oldest=Min("created_at"))["oldest"]
        since = f", the oldest since {oldest:%Y-%m-%d %H:%M:%S}" if oldest else ""
        figures = ", ".join(f"{counts.get(state, 0)} {state}" for state in OutboxState.values)
        self.stdout.write(f"database {using}: {figures}{since}")
        troubled = rows.exclude(last_error="").exclude(state=OutboxState.SENT).order_by("id")
        for row in troubled[:LISTED_MAX]:
            self.stdout.write(f"  {row.state} {row.message_id} {row.topic} after {row.attempts}: {row.last_error}")
