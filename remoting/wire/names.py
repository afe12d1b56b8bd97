"""Names of topics and groups: rules, derived names, reserved ones (`TopicValidator`)."""

from __future__ import annotations

import re
from collections.abc import Collection

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.limits import GROUP_CHARS_MAX, RETRY_TOPIC_CHARS_MAX, TOPIC_CHARS_MAX

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
RESERVED_PREFIX = "RMQ_SYS_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
# Replies to a producer's requests are stored in `<cluster>_REPLY_TOPIC`.
REPLY_TOPIC_SUFFIX = "_REPLY_TOPIC"

# The template from whose settings an unknown topic is created.
AUTO_CREATE_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
BENCHMARK_TOPIC = "BenchmarkTest"
CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"

SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        HALF_TOPIC,
        TRACE_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        CHECKPOINT_TOPIC,
    }
)
NOT_ALLOWED_SEND_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        # Not so in Apache, whose timers stop for good at a message without a time.
        TIMER_TOPIC,
    }
)
SYSTEM_GROUPS = frozenset(
    {
        "DEFAULT_PRODUCER",
        "DEFAULT_CONSUMER",
        "TOOLS_CONSUMER",
        "SCHEDULE_CONSUMER",
        "FILTERSRV_CONSUMER",
        "__MONITOR_CONSUMER",
        "CLIENT_INNER_PRODUCER",
        "SELF_TEST_P_GROUP",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
        "CID_RMQ_SYS_TRANS",
    }
)

_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+\Z")


def retry_topic(group: str) -> str:
    """Returns the topic to which messages of `group` are sent back."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """Returns the topic of the dead letters of `group`."""
    return DLQ_PREFIX + group


def group_of_dlq(topic: str) -> str:
    """Returns the group whose dead letters a topic holds."""
    return topic.removeprefix(DLQ_PREFIX)


def is_retry_topic(topic: str) -> bool:
    return topic.startswith(RETRY_PREFIX)


def is_dlq_topic(topic: str) -> bool:
    return topic.startswith(DLQ_PREFIX)


def split_namespace(name: str) -> tuple[str, str]:
    """Returns the namespace of a topic or group, "" without one, and the name without it (Java `NamespaceUtil`).

    `prod%orders` is ("prod", "orders"), `%RETRY%prod%billing` ("prod", "%RETRY%billing"). Names of RocketMQ's own have
    none.
    """
    if is_system_topic(name) or is_system_group(name):
        return "", name
    kind, rest = _split_kind(name)
    namespace, separator, rest = rest.partition("%")
    return (namespace, kind + rest) if namespace and separator and rest else ("", name)


def with_namespace(namespace: str, name: str) -> str:
    """Returns the topic or group as brokers know it in `namespace` (Java `NamespaceUtil.wrapNamespace`).

    `orders` in `prod` is `prod%orders`, `%RETRY%billing` is `%RETRY%prod%billing`. Without a namespace, for names of
    RocketMQ's own, and for a name that is in it already, nothing changes.
    """
    if not namespace or not name or is_system_topic(name) or name.startswith(SYSTEM_GROUP_PREFIX):
        return name
    kind, rest = _split_kind(name)
    return name if rest.startswith(f"{namespace}%") else f"{kind}{namespace}%{rest}"


def without_namespace(namespace: str, name: str) -> str:
    """Returns the topic or group as those in `namespace` call it; other names as they are."""
    kind, rest = _split_kind(name)
    return kind + rest.removeprefix(f"{namespace}%") if namespace else name


def _split_kind(name: str) -> tuple[str, str]:
    kind = next((prefix for prefix in (RETRY_PREFIX, DLQ_PREFIX) if name.startswith(prefix)), "")
    return kind, name[len(kind) :]


def is_topic_of_broker(topic: str, own_names: Collection[str]) -> bool:
    """Tells whether RocketMQ keeps the topic for itself: system topics, those named after cluster and brokers.

    `own_names`: the names of the cluster and its brokers. Apache's brokers make further topics under RESERVED_PREFIX
    (`RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC`), and do not call all of them system topics.
    """
    return (
        is_system_topic(topic)
        or topic.startswith(RESERVED_PREFIX)
        or topic.removesuffix(REPLY_TOPIC_SUFFIX) in own_names
    )


def is_system_topic(topic: str) -> bool:
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_system_group(group: str) -> bool:
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def check_topic(topic: str) -> None:
    """Raises MessageError (INVALID_PARAMETER) naming the rule that `topic` breaks."""
    derived = is_retry_topic(topic) or is_dlq_topic(topic)
    _check("topic", topic, RETRY_TOPIC_CHARS_MAX if derived else TOPIC_CHARS_MAX)


def check_group(group: str) -> None:
    """Raises MessageError (INVALID_PARAMETER) naming the rule that `group` breaks."""
    _check("group", group, GROUP_CHARS_MAX)


def _check(kind: str, name: str, chars_max: int) -> None:
    if not name.strip():
        raise MessageError(f"the {kind} name is blank", ResponseCode.INVALID_PARAMETER)
    if len(name) > chars_max:
        raise MessageError(
            f"the {kind} name has {len(name)} characters; {chars_max} are allowed: {name[:40]!r}…",
            ResponseCode.INVALID_PARAMETER,
        )
    if not _LEGAL.match(name):
        raise MessageError(
            f"the {kind} name {name!r} holds a character other than letters, digits, % | - and _",
            ResponseCode.INVALID_PARAMETER,
        )
