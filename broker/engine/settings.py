"""The settings that can be read, and some of them changed, while the broker runs (RocketMQ's `Configuration`).

`SETTINGS` is the broker's table, `NAME_SERVER_SETTINGS` the name server's. A row names a setting as RocketMQ does, says
how it is read from the broker's config and, for those that can change, which field takes the new value and how its text
is checked. Every part reads the field anew each time; a part that must do more than that listens (`listen`).

What was changed is kept in `config/broker.properties` and `config/namesrv.properties`, in RocketMQ's own style, and
counts again at the next start; what was given on the command line wins over it and cannot be changed meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from broker.engine.config import BrokerConfig
from broker.engine.config_files import ConfigFileUnreadable, load_config, save_config_file
from broker.engine.retention.rules import check_hours
from broker.engine.schedule.levels import parse_levels
from broker.engine.store.values import SEGMENT_BYTES
from remoting.complaints import ComplaintLog
from remoting.wire.bodies.topics import PERM_READ_WRITE, DataVersion
from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.java_properties import read_properties, write_properties
from remoting.wire.limits import BODY_BYTES_MAX
from remoting.wire.names import TRACE_TOPIC

logger = logging.getLogger(__name__)

FILE_NAME = "broker.properties"
NAME_SERVER_FILE_NAME = "namesrv.properties"
# Apache's `configBlackList` of both: these cannot be set, though we have none of them.
NEVER = frozenset({"brokerConfigPath", "rocketmqHome", "configBlackList"})
NAME_SERVER_NEVER = frozenset({"configStorePath", "kvConfigPath", "rocketmqHome", "configBlackList"})
# A year: what is further away than that is a slip of the keyboard.
_TIMER_SECONDS_MAX = 366 * 86_400
_QUEUES_MAX = 1024
# A hundred years: for ever.
_RESERVED_HOURS_MAX = 876_000
_DAY_MS = 86_400_000
# Of the names in a log line: a tool may send any number of them, each of any length.
_NAMES_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table: `read` returns the present value, `field` of the config takes what `parse` makes of a text.

    A setting that cannot change has no `field`. `parse` raises ValueError with what to give instead.
    """

    name: str
    read: Callable[[BrokerConfig], object]
    field: str | None = None
    parse: Callable[[str], Any] = str


def number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal() or not low <= int(text) <= high:
            raise ValueError(f"give a number from {low} to {high}")
        return int(text)

    return parse


def switch(text: str) -> bool:
    """Reads "true" or "false".

    Java takes all but "true" for false; a slip of the keyboard should not switch anything off.
    """
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("give true or false")
    return text.strip().lower() == "true"


def changing(name: str, field: str, parse: Callable[[str], Any]) -> Setting:
    """Declares a setting that is a field of the config and can be changed."""
    return Setting(name, lambda config: getattr(config, field), field, parse)


def fixed(name: str, value: object) -> Setting:
    """Declares a setting that this broker has no choice about; tools read it."""
    return Setting(name, lambda _: value)


def _levels_text(text: str) -> str:
    parse_levels(text)
    return " ".join(text.split())


def _permission(text: str) -> int:
    perm = number(0, PERM_READ_WRITE)(text)
    if perm & ~PERM_READ_WRITE:
        raise ValueError("give 6 for reading and writing, 4 for reading, 2 for writing, 0 for neither")
    return perm


SETTINGS: tuple[Setting, ...] = (
    # What the broker is.
    Setting("brokerClusterName", lambda config: config.cluster),
    Setting("brokerName", lambda config: config.name),
    fixed("brokerId", 0),
    fixed("brokerRole", "ASYNC_MASTER"),
    Setting("brokerIP1", lambda config: config.advertise_host),
    Setting("listenPort", lambda config: config.port),
    Setting("namesrvAddr", lambda config: f"{config.advertise_host}:{config.namesrv_port}"),
    Setting("storePathRootDir", lambda config: config.store),
    Setting("storePathCommitLog", lambda config: config.store / "commitlog"),
    fixed("mappedFileSizeCommitLog", SEGMENT_BYTES),
    Setting("flushDiskType", lambda config: f"{config.flush.upper()}_FLUSH"),
    fixed("filterServerNums", 0),
    fixed("slaveReadEnable", False),
    fixed("traceOn", True),
    fixed("traceTopicEnable", False),
    fixed("msgTraceTopicName", TRACE_TOPIC),
    fixed("useTLS", False),
    Setting("enablePropertyFilter", lambda config: config.property_filter),
    Setting("flushConsumerOffsetInterval", lambda config: int(config.offsets_save_interval_s * 1000)),
    # What it lets in.
    changing("brokerPermission", "perm", _permission),
    changing("maxMessageSize", "body_bytes_max", number(1, BODY_BYTES_MAX)),
    changing("autoCreateTopicEnable", "creates_topics", switch),
    changing("defaultTopicQueueNums", "default_queue_nums", number(1, _QUEUES_MAX)),
    changing("autoCreateSubscriptionGroup", "creates_groups", switch),
    changing("useServerSideResetOffset", "server_side_reset", switch),
    # What comes later.
    changing("messageDelayLevel", "delay_levels", _levels_text),
    fixed("timerWheelEnable", True),
    fixed("timerPrecisionMs", 1000),
    changing("timerMaxDelaySec", "timer_max_delay_s", number(1, _TIMER_SECONDS_MAX)),
    changing("recallMessageEnable", "recalls", switch),
    changing("storeReplyMessageEnable", "stores_replies", switch),
    # What goes.
    changing("fileReservedTime", "file_reserved_hours", number(1, _RESERVED_HOURS_MAX)),
    changing("deleteWhen", "delete_when", check_hours),
    changing("diskMaxUsedSpaceRatio", "disk_clean_percent", number(10, 95)),
    changing("diskSpaceCleanForciblyRatio", "disk_force_percent", number(10, 100)),
    changing("diskSpaceWarningLevelRatio", "disk_full_percent", number(10, 100)),
    # Transactions.
    changing("rejectTransactionMessage", "rejects_transactions", switch),
    changing("transactionTimeOut", "transaction_timeout_ms", number(0, _DAY_MS)),
    changing("transactionCheckInterval", "transaction_check_interval_ms", number(100, _DAY_MS)),
    changing("transactionCheckMax", "transaction_check_max", number(0, 1_000_000)),
)

NAME_SERVER_SETTINGS: tuple[Setting, ...] = (
    Setting("bindAddress", lambda config: config.host),
    Setting("listenPort", lambda config: config.namesrv_port),
    Setting("kvConfigPath", lambda config: config.config_dir / "kvConfig.json"),
    Setting("configStorePath", lambda config: config.config_dir / NAME_SERVER_FILE_NAME),
    changing("enableAllTopicList", "lists_all_topics", switch),
    changing("enableTopicList", "lists_topics", switch),
    changing("orderMessageEnable", "routes_order_config", switch),
)


class Settings:
    """Callers: the runtime (`load`, before anything reads the config), the processors of 25 and 26.

    Affects the config's fields that `SETTINGS` names, and calls `on_changed[name]` after them.
    """

    def __init__(
        self,
        config: BrokerConfig,
        complaints: ComplaintLog,
        table: tuple[Setting, ...] = SETTINGS,
        *,
        file_name: str = FILE_NAME,
        never: frozenset[str] = NEVER,
    ) -> None:
        """`never`: names that cannot be set, whether they are in the table or not."""
        self._config = config
        self._complaints = complaints
        self._table = {setting.name: setting for setting in table}
        self._path = config.config_dir / file_name
        self._never = never
        self._version = DataVersion(timestamp=_now_ms())
        self.on_changed: dict[str, list[Callable[[], None]]] = {}

    def load(self) -> None:
        """Takes over what was changed before this start. Raises ConfigFileUnreadable, naming what makes no sense."""
        for name, text in self._read_file().items():
            setting = self._table.get(name)
            if setting is None or setting.field is None:
                logger.warning("%s: %s is no setting that can be changed; it is left alone", self._path, name)
            elif name in self._config.given:
                logger.warning("%s: %s=%s does not count: it was given at the start", self._path, name, text)
            else:
                try:
                    setattr(self._config, setting.field, setting.parse(text))
                except ValueError as error:
                    raise ConfigFileUnreadable(f"{self._path}: {name}={text}: {error}") from error

    def listen(self, name: str, changed: Callable[[], None]) -> None:
        """Registers `changed`, which is called after `name` has a new value. It must not fail."""
        self.on_changed.setdefault(name, []).append(changed)

    @property
    def version(self) -> DataVersion:
        return self._version

    def all_as_text(self) -> dict[str, str]:
        return {setting.name: _text(setting.read(self._config)) for setting in self._table.values()}

    def change(self, wanted: Mapping[str, str]) -> None:
        """Changes all settings or none; an unknown name is left out, as Apache does.

        Raises MessageError (NO_PERMISSION for one that cannot change, INVALID_PARAMETER for a value that makes no
        sense), ConfigFileUnwritable.
        """
        if not self._never.isdisjoint(wanted):
            raise MessageError("Can not update config in black list.", ResponseCode.NO_PERMISSION)
        unknown = [name for name in wanted if name not in self._table]
        if unknown:
            named = ", ".join(unknown)[:_NAMES_CHARS_MAX]
            self._complaints.warn(self._path.name, "unknown setting", "there is no setting %s: it is left out", named)
        values = {
            name: (self._table[name], self._checked(name, text)) for name, text in wanted.items() if name in self._table
        }
        if not values:
            return
        self._save(self._read_file() | {name: wanted[name].strip() for name in values})
        self._version = DataVersion(counter=self._version.counter + 1, timestamp=_now_ms())
        for setting, value in values.values():
            logger.info("%s: %s -> %s", setting.name, _text(setting.read(self._config)), _text(value))
            assert setting.field is not None, "checked above"
            setattr(self._config, setting.field, value)
        for name in values:
            for changed in self.on_changed.get(name, ()):
                changed()

    def _checked(self, name: str, text: str) -> Any:
        setting = self._table[name]
        if setting.field is None:
            raise MessageError(
                f"Can not update config in black list. {name} cannot change while the broker runs.",
                ResponseCode.NO_PERMISSION,
            )
        if name in self._config.given:
            raise MessageError(
                f"Can not update config in black list. {name} was given at the broker's start; start it without that.",
                ResponseCode.NO_PERMISSION,
            )
        try:
            return setting.parse(text)
        except ValueError as error:
            raise MessageError(f"{name}={text[:100]}: {error}", ResponseCode.INVALID_PARAMETER) from error

    def _read_file(self) -> dict[str, str]:
        return load_config(self._path, lambda content: read_properties(content.decode())) or {}

    def _save(self, kept: Mapping[str, str]) -> None:
        save_config_file(self._path, write_properties(kept), self._complaints)


def name_server_settings(config: BrokerConfig, complaints: ComplaintLog) -> Settings:
    """Returns the settings of the name server in the broker's process."""
    return Settings(config, complaints, NAME_SERVER_SETTINGS, file_name=NAME_SERVER_FILE_NAME, never=NAME_SERVER_NEVER)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
