"""The setting CONSUMER_PRODUCER: how the producer of Django code sends, for all clusters.

    CONSUMER_PRODUCER = {"group": "shop", "trace": True, "compression": "zstd"}

group                producer group that brokers and the console show ("django")
timeout_ms           of one send, all attempts together (3000)
retries              attempts after the first (2)
compress_from_bytes  bodies of that size and more travel compressed (4096)
compression          "zlib", "lz4" or "zstd"; clients before 5.0 read zlib alone ("zlib")
avoids_slow_brokers  brokers that answer slowly are not chosen for a while (False)
trace                each message sent is recorded in the trace topic (False)
trace_topic          the topic for that ("RMQ_SYS_TRACE_TOPIC")
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from remoting.client.outgoing import Compression
from remoting.client.producer import RETRIES, SEND_TIMEOUT_MS
from remoting.wire.compression import CompressionType
from remoting.wire.errors import MessageError
from remoting.wire.limits import COMPRESS_BODY_BYTES_MIN
from remoting.wire.names import TRACE_TOPIC, check_group, check_topic

NAME = "CONSUMER_PRODUCER"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    group: str = "django"
    timeout_ms: int = SEND_TIMEOUT_MS
    retries: int = RETRIES
    compress_from_bytes: int = COMPRESS_BODY_BYTES_MIN
    compression: str = "zlib"
    avoids_slow_brokers: bool = False
    trace: bool = False
    trace_topic: str = TRACE_TOPIC

    def __post_init__(self) -> None:
        """Raises ValueError or MessageError."""
        check_group(self.group)
        check_topic(self.trace_topic)
        if self.compression.upper() not in CompressionType.__members__:
            raise ValueError(f"compression is {self.compression!r}; zlib, lz4 or zstd")
        for name, least in (("timeout_ms", 1), ("retries", 0), ("compress_from_bytes", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}; a number of {least} or more is needed")

    @property
    def compressing(self) -> Compression:
        return Compression(self.compress_from_bytes, CompressionType[self.compression.upper()])


def producer_settings() -> ProducerSettings:
    """Returns what the setting says. Raises ImproperlyConfigured for an unknown word or a value out of range."""
    given: dict[str, Any] = dict(getattr(settings, NAME, None) or {})
    known = [field.name for field in fields(ProducerSettings)]
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise ImproperlyConfigured(f"{NAME} has no {unknown[0]!r}; there are: {', '.join(known)}")
    try:
        return ProducerSettings(**given)
    except (ValueError, TypeError, AttributeError, MessageError) as error:
        raise ImproperlyConfigured(f"{NAME}: {error}") from error
