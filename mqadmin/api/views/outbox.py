"""`/outbox`: messages that were written with a database transaction; sent again by `send_outbox_again`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from consumer.outbox.models import OutboxMessage, OutboxState
from mqadmin.api.listing import FILTER_CHARS_MAX, ListQuery, ListResource, described
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.outbox import OutboxMessageSerializer
from mqadmin.hosting.outbox import OutboxRows, databases


class OutboxQuery(ListQuery):
    state = serializers.ChoiceField(
        choices=OutboxState.choices, default=OutboxState.PENDING.value, help_text="Messages of one state alone."
    )
    database = serializers.CharField(
        max_length=FILTER_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="One of CONSUMER_OUTBOX; empty: the first of them.",
    )

    def validate_database(self, database: str) -> str:
        known = databases()
        if database and database not in known:
            raise serializers.ValidationError(f"No outbox is in {database!r}; there are: {', '.join(known)}.")
        return database or known[0]


@described("list_outbox", "List the messages of the outbox")
class Outbox(ListResource):
    """Messages of the outbox: those that wait in the order in which they are sent, others newest first."""

    row = OutboxMessageSerializer
    query = OutboxQuery
    permission = "mq_consumer.view_outboxmessage"

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[OutboxMessage]:
        return OutboxRows(query["database"], OutboxState(query["state"]))
