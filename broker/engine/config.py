"""A broker's configuration. After the start only `settings.py` changes it. Each limit has its unit and its reason."""

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
    """A broker's configuration: RocketMQ's `BrokerConfig` and `MessageStoreConfig`, as far as they are supported.

    The broker listens on `host`; `advertise_host` (an IPv4 address) stands in routes and message ids. Port 0 stands for
    any free port; the runtime replaces it by the real number before anything reads it. Code that needs a field reads it
    anew each time: the fields that `settings.SETTINGS` names may change while the broker runs.
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
    # RocketMQ's `recallMessageEnable`. Off there, on here: producers get a recall handle, so it should work.
    recalls: bool = True
    # RocketMQ's `rejectTransactionMessage`.
    rejects_transactions: bool = False
    # RocketMQ's `transactionTimeOut`: a half message is not checked before this age.
    transaction_timeout_ms: int = 6_000
    # RocketMQ's `transactionCheckInterval`: the time between two checks of a half message.
    transaction_check_interval_ms: int = 30_000
    # RocketMQ's `transactionCheckMax`: after so many checks a half message is given up.
    transaction_check_max: int = 15
    # RocketMQ's `enablePropertyFilter`: SQL92 filters. Off there, where each message costs a search; on here.
    property_filter: bool = True
    # RocketMQ's `autoCreateTopicEnable`, `defaultTopicQueueNums` and `autoCreateSubscriptionGroup`.
    creates_topics: bool = True
    default_queue_nums: int = 8
    creates_groups: bool = True
    # RocketMQ's `storeReplyMessageEnable`: replies are stored, too, not only pushed to the requesting client.
    stores_replies: bool = True
    # RocketMQ's `useServerSideResetOffset`: a reset (222) acts at the next pull. Off: members are notified (220).
    server_side_reset: bool = True
    # RocketMQ's settings of the name server: `orderMessageEnable` (routes hold the order configuration of their topic),
    # `enableAllTopicList` (206), `enableTopicList` (224, 311-313).
    routes_order_config: bool = False
    lists_all_topics: bool = True
    lists_topics: bool = True
    # RocketMQ's `fileReservedTime`: the age at which a segment of the commit log may be removed,
    file_reserved_hours: int = 72
    # in these hours of the day (`deleteWhen`, as in "04;16"),
    delete_when: str = "04"
    # or in any hour while more of the disk than this is used (`diskMaxUsedSpaceRatio`).
    disk_clean_percent: int = 75
    # RocketMQ's `diskSpaceCleanForciblyRatio`: above this the oldest segments are removed whatever their age.
    disk_force_percent: int = 85
    # RocketMQ's `diskSpaceWarningLevelRatio`: above this messages are refused.
    disk_full_percent: int = 90
    # RocketMQ's `flushConsumerOffsetInterval`.
    offsets_save_interval_s: float = 5.0
    # RocketMQ's channel expiry: a client that sends no heartbeat for so long counts as lost.
    member_expiry_s: float = 120.0
    member_scan_interval_s: float = 10.0
    # RocketMQ's names of the settings that the command line gives: they win over those saved in the store.
    given: frozenset[str] = frozenset()

    @property
    def config_dir(self) -> Path:
        """Returns the folder of RocketMQ's JSON files and of the changed settings."""
        return self.store / "config"

    @property
    def is_readable(self) -> bool:
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        return bool(self.perm & PERM_WRITE)

    @property
    def store_host(self) -> tuple[str, int]:
        """Returns the address in every stored message and its offset message id."""
        return self.advertise_host, self.port

    @property
    def address(self) -> str:
        return f"{self.advertise_host}:{self.port}"
