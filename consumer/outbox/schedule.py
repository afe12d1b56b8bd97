"""When the outbox is delivered: by beat every few seconds, besides what commits begin."""

from __future__ import annotations

DELIVERY_NAME = "consumer: deliver the outbox"
DELIVERY_TASK = "consumer.tasks.deliver_outbox"
DELIVERY_EVERY_S = 5
# A run that no worker has taken by then is void: the next one follows.
DELIVERY_EXPIRES_S = 10
