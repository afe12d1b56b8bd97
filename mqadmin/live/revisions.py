"""Revisions of what pages show: a random token for each live group (`events.live_group`), new with every change.

`events.publish` renews the tokens before it sends the change, so a page that gets it finds another revision than
before. The tokens are kept in Django's cache, which all web processes and workers share. A token that the cache has
lost reads "". A cache that cannot be reached gives no revision: then no fragment may be shared.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable
from hashlib import sha256

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

KEY_PREFIX = "revision:"
# A token outlives every fragment that was rendered under it (console/fragments.py).
KEPT_S = 3600


def renew(live_groups: Collection[str]) -> None:
    """Gives each of the live groups a new revision. Raises OSError or RedisError."""
    token = uuid.uuid4().hex
    cache.set_many({KEY_PREFIX + name: token for name in live_groups}, KEPT_S)


def revision_of(live_groups: Iterable[str]) -> str | None:
    """Returns the revision of all that a page shows; None when it is not known."""
    keys = sorted({KEY_PREFIX + name for name in live_groups})
    try:
        tokens = cache.get_many(keys)
    except (OSError, RedisError) as error:
        logger.warning("the cache cannot be reached, so each viewer's page is rendered separately: %s", error)
        return None
    return sha256("\n".join(f"{key} {tokens.get(key, '')}" for key in keys).encode()).hexdigest()
