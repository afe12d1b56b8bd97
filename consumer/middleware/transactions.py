"""Runs each message in a transaction of the default database: what raises has changed nothing.

For all plain listeners of the project (Django's ATOMIC_REQUESTS); for a single one, or another database, put
`@transaction.atomic` below `@listener(…)`. What is to happen after the commit goes into `transaction.on_commit`.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils.decorators import sync_and_async_middleware

from consumer.middleware.chain import Call, Consume


@sync_and_async_middleware
def atomic(consume: Consume) -> Call:
    """Raises ImproperlyConfigured for an async listener: Django has no transactions across an `await`."""
    if consume.is_async:
        raise ImproperlyConfigured(
            f"{consume.listener.name} is async, and no transaction spans an `await`: make it a plain function, or take"
            f" {__name__}.atomic out of CONSUMER_MIDDLEWARE and use transaction.atomic where it is needed"
        )

    def middleware(message: Any) -> Any:
        with transaction.atomic():
            return consume(message)

    return middleware
