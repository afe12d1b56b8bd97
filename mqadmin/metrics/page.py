"""The text of `/metrics`, collected at most every KEPT_S however many ask, and who may read it."""

from __future__ import annotations

import hmac
import ipaddress
import threading
import time
from collections.abc import Callable, Mapping

from prometheus_client import CONTENT_TYPE_LATEST

from mqadmin.metrics.collecting import ClustersCollector

CONTENT_TYPE = CONTENT_TYPE_LATEST
# Two Prometheus servers, each every 15 s, cost no more than one.
KEPT_S = 5.0


class MetricsPage:
    """One at a time collects; whoever asks meanwhile waits for it and takes the same text."""

    def __init__(self, collect: Callable[[], bytes] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._collect = collect or ClustersCollector().text
        self._clock = clock
        self._lock = threading.Lock()
        self._kept = b""
        self._kept_until_s = -1.0

    def text(self) -> bytes:
        """Raises DatabaseError."""
        with self._lock:
            if self._clock() >= self._kept_until_s:
                self._kept = self._collect()
                self._kept_until_s = self._clock() + KEPT_S
            return self._kept


def may_read(token: str, client: str, headers: Mapping[str, str]) -> bool:
    """Says whether a request may read the metrics: with the token where one is set, else from this machine alone.

    `client` is the address of the other end, `headers` have lower-case names. A request that a proxy passed on is not
    from this machine, wherever the proxy runs.
    """
    if token:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
    is_passed_on = any(name == "forwarded" or name == "via" or name.startswith("x-forwarded") for name in headers)
    try:
        return ipaddress.ip_address(client).is_loopback and not is_passed_on
    except ValueError:
        return False
