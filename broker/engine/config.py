"""A broker's configuration; after the start `settings.py` alone changes it. Each limit has its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from broker.engine.schedule.levels import DEFAULT_LEVELS_TEXT
from remoting.wire.bodies.topics import PERM_READ, PERM_READ_WRITE, PERM_WRITE
from remoting.wire.limits import BODY_BYTES_MAX

BROKER_PORT = 10911
NAMESRV_PORT = 9876


@dataclass(slots=True)
class BrokerConfig:
    """`host` is listened on, `advertise_host` (an IPv4 address) stands in routes and message ids.

    A port of 0 takes a free one; the runtime replaces it by the real number before anything reads it.
    A part that needs a field reads it anew each time: what `settings.SETTINGS` names may change while the broker runs.
    """

    store: Path
    host: str = "127.0.0.1"
    advertise_host: str = "127.0.0.1"
    port: int = BROKER_PORT
    namesrv_port: int = NAMESRV_PORT
    cluster: str = "local"
    name: str = "broker-a"
    flush: Literal["sync", "async"] = "sync"
    scheduler: Literal["internal", "celery"] = "internal"
    perm: int = PERM_READ_WRITE
    # RocketMQ's `maxMessageSize`.
    body_bytes_max: int = BODY_BYTES_MAX
    # RocketMQ's `messageDelayLevel`.
    delay_levels: str = DEFAULT_LEVELS_TEXT
    # RocketMQ's `timerMaxDelaySec`: three days.
    timer_max_delay_s: int = 3 * 86_400
    # RocketMQ's `recallMessageEnable`. Off there, on here: a sender gets a handle, and it is good for something.
    recalls: bool = True
    # RocketMQ's `rejectTransactionMessage`.
    rejects_transactions: bool = False
    # RocketMQ's `transactionTimeOut`: a half message is left alone for so long before its producers are checked.
    transaction_timeout_ms: int = 6_000
    # RocketMQ's `transactionCheckInterval`: they are checked again after so long.
    transaction_check_interval_ms: int = 30_000
    # RocketMQ's `transactionCheckMax`: after so many times the half is given up.
    transaction_check_max: int = 15
    # RocketMQ's `enablePropertyFilter`: SQL92. Off there, where each message costs it a search; on here.
    property_filter: bool = True
    # RocketMQ's `autoCreateTopicEnable`, `defaultTopicQueueNums` and `autoCreateSubscriptionGroup`.
    creates_topics: bool = True
    default_queue_nums: int = 8
    creates_groups: bool = True
    # RocketMQ's `storeReplyMessageEnable`: replies are stored too, not only passed on.
    stores_replies: bool = True
    # RocketMQ's `useServerSideResetOffset`: a reset (222) waits for the next pull. Off: members are notified (220).
    server_side_reset: bool = True
    # RocketMQ's `fileReservedTime`: so old must a segment of the commit log be before it is removed,
    file_reserved_hours: int = 72
    # in these hours of the day (`deleteWhen`, as in "04;16"),
    delete_when: str = "04"
    # or in any hour when the disk is fuller than that (`diskMaxUsedSpaceRatio`).
    disk_clean_percent: int = 75
    # RocketMQ's `diskSpaceCleanForciblyRatio`: over this the oldest segments go whatever their age.
    disk_force_percent: int = 85
    # RocketMQ's `diskSpaceWarningLevelRatio`: over this messages are refused.
    disk_full_percent: int = 90
    # RocketMQ's `flushConsumerOffsetInterval`.
    offsets_save_interval_s: float = 5.0
    # RocketMQ's channel expiry: a client silent for so long is taken for lost.
    member_expiry_s: float = 120.0
    member_scan_interval_s: float = 10.0
    # RocketMQ's names of the settings that the command line gave: the kept ones do not count against them.
    given: frozenset[str] = frozenset()

    @property
    def config_dir(self) -> Path:
        """The folder of RocketMQ's own JSON files, and of the settings that were changed."""
        return self.store / "config"

    @property
    def is_readable(self) -> bool:
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        return bool(self.perm & PERM_WRITE)

    @property
    def store_host(self) -> tuple[str, int]:
        """Stands in every stored message and in its offset message id."""
        return self.advertise_host, self.port

    @property
    def address(self) -> str:
        return f"{self.advertise_host}:{self.port}"
