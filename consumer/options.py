"""The options of `@listener(…)`: one row each in `OPTIONS`, one typed field each for editors.

A new option is a row in the table, a field with its docstring in `ListenerOptions` (each listener has its own value) or
`GroupOptions` (one value for all listeners of a group), and a line where it is used: `assembly.py` for the group's,
`listener.py` for a listener's. Everything is checked when Django has started; a wrong value or combination names the
declarations that it comes from.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Any, TypedDict

from consumer.bodies import body_fault
from consumer.engine.breaker import Breaker
from consumer.engine.config import (
    FOR_QUEUE,
    FOR_TOPIC,
    PULL_BATCH,
    PULL_INTERVAL_MS,
    SIZE_FOR_QUEUE_MIB,
    SIZE_FOR_TOPIC_MIB,
    SPAN,
    THREADS_MAX,
)
from consumer.engine.consume_concurrently import CONSUME_TIMEOUT_MS
from consumer.engine.consume_orderly import SUSPEND_MS, SUSPEND_MS_MAX, SUSPEND_MS_MIN
from consumer.engine.failure_policy import FailurePolicy
from consumer.engine.flow_control import MIB, FlowControl
from consumer.engine.listening import is_async_callable
from consumer.engine.rebalancer import QueuesChanged
from consumer.engine.start_position import start_rule
from remoting.allocation import STRATEGIES, Strategy
from remoting.wire.errors import MessageError
from remoting.wire.names import TRACE_TOPIC, check_group, check_topic
from remoting.wire.tags import ALL, parse_tags

INSTANCES_MAX = 1000
RECONSUME_TIMES_MAX = 2**31 - 1
FLOW = FlowControl()

# RocketMQ's largest `consumeMessageBatchMaxSize`; a pull brings 32.
BATCH_SIZE_MAX = 1024
CONSUME_TIMEOUT_S_MAX = 24 * 3600
# A month: more than any broker keeps messages by default.
LAG_OBJECTIVE_S_MAX = 30 * 86_400
_ONE_AT_A_TIME = "in order, messages come one at a time"
_ITS_TURN = "in order, a message stays at the head of its queue until it is consumed"

# Returns what is needed instead of the value, "" when the value is right.
Check = Callable[[Any], str]


class ListenerOptions(TypedDict, total=False):
    """What each listener says for itself."""

    tags: str
    """"*", or "paid || refunded"."""
    body: Any
    """The type of `message.data`: bytes, str, dict, list, a msgspec.Struct, a dataclass, a pydantic model."""
    sql: str | None
    """An SQL92 expression over the properties instead: "amount > 100 AND currency IN ('EUR', 'USD')"."""
    once: bool | str
    """Skip what was consumed before: its key is recorded in a transaction of True (the default) or a named database."""
    time_limit_s: float | None
    """How long a call of an async listener may take before it is cancelled, its message retried."""
    batch_size: int | None
    """The function takes a list of so many messages at most, as many as one pull brought; None: one message."""
    dead_letter_on: type[BaseException] | tuple[type[BaseException], ...]
    """Exceptions that no retry would help: the message is a dead letter at once. `DeadLetter` is one always."""
    retry_delays_s: Mapping[type[BaseException], float]
    """Exception class → seconds until the message comes again, instead of RocketMQ's 10 s, 30 s, 1 min …"""


class GroupOptions(TypedDict, total=False):
    """What any listener of a group says for the whole group; where two say it, it must be the same."""

    wanted_instances: int
    """How many instances the workers keep running, in all."""
    threads: int
    """How many messages one instance consumes at once."""
    max_reconsume_times: int | None
    """How many retries a message gets before it is a dead letter; None: 16, and without end with `orderly`."""
    consume_from: str | datetime
    """Where the group starts on a queue without a committed offset: "last" (new messages), "first", or a datetime."""
    orderly: bool
    """Consume each queue's messages one after the other; one that fails holds up its queue."""
    broadcasting: bool
    """Every instance gets every message, keeps its own offsets on its machine, and drops what fails."""
    suspend_ms: int
    """With `orderly`: how long a queue rests whose message failed, before the message comes again."""
    queues_changed: QueuesChanged | None
    """A function (topic, its queues, those of this instance), called on the event loop after each change of them."""
    trace: bool
    """Send what becomes of each message to the trace topic, where the console and Apache's tools find it."""
    trace_topic: str
    """Another topic for traces."""
    namespace: str
    """RocketMQ's namespace: with "prod" brokers know group and topics as prod%billing and prod%orders."""
    pull_threshold_for_queue: int
    """How many messages of a queue wait here at most before it is pulled no more (RocketMQ's names, here and below)."""
    pull_threshold_for_topic: int | None
    """The same for all queues of the instance together, divided among them; takes the place of the one for a queue."""
    pull_threshold_size_for_queue: int
    """How many MiB of bodies of a queue wait here at most."""
    pull_threshold_size_for_topic: int | None
    """The same for all queues of the instance together, divided among them."""
    consume_concurrently_max_span: int
    """How far the largest offset of a queue that waits here may be from the smallest, without `orderly`."""
    pull_batch_size: int
    """How many messages one pull asks for; brokers answer 32 at most unless they are set otherwise."""
    pull_interval_ms: int
    """How long to wait after a pull that found messages."""
    breaker: Breaker | None
    """`Breaker(on=OperationalError)`: after failures in a row consuming stands still and is tried now and then."""
    lag_objective_s: int | None
    """For how long the next message may wait before the console says that the group is over its objective."""
    consume_timeout_s: int
    """When a listener has run for so long, its message is sent back and does not hold up the offset any more."""
    strategy: str | Strategy
    """How members share the queues: "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", a strategy of `remoting.allocation` with
    its parameters (`MachineRoom(…)`), or a function (queues, members, me) → queues of me. All members need the same."""


class Options(ListenerOptions, GroupOptions, total=False):
    """All keyword arguments of `@listener(…)` besides group and topic."""


class Scope(Enum):
    LISTENER = "listener"
    GROUP = "group"


class Kind(Enum):
    """Which functions can have an option; the value is the end of the error's text."""

    ANY = ""
    ASYNC = "an `async def`: a thread cannot be ended from outside"
    PLAIN = "a plain function: no transaction spans an `await`"


@dataclass(frozen=True, slots=True)
class Option:
    """A row of the table. `not_with`: another option → why the two contradict each other; `needs`: another option → why
    this one does nothing without it.

    Two options contradict each other when both are given with a value other than their default. `fault_id` is that of
    the system check for a wrong value.
    """

    name: str
    scope: Scope
    default: Any
    check: Check
    not_with: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = Kind.ANY
    fault_id: str = "consumer.E004"


def number(low: int, high: int) -> Check:
    """Returns the check of a whole number from `low` to `high`."""

    def check(value: Any) -> str:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return "" if is_number and low <= value <= high else f"a number from {low} to {high} is needed"

    return check


def one_of(*values: Any) -> Check:
    """Returns the check of a value from a closed set; `one_of(True, False)` takes no 0 and 1."""

    def check(value: Any) -> str:
        is_known = any(value == known and type(value) is type(known) for known in values)
        return "" if is_known else f"one of {', '.join(map(repr, values))} is needed"

    return check


def or_none(check: Check) -> Check:
    """Returns the check of a value that may be left open."""
    return lambda value: "" if value is None else check(value)


def seconds(value: Any) -> str:
    """Checks a number of seconds above 0, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if value is None or (is_number and 0 < value < float("inf")) else "a number of seconds above 0 is needed"


def _database(value: Any) -> str:
    # Which there are is a system check's to say: the settings are not loaded yet.
    is_name = isinstance(value, str) and value != ""
    return "" if isinstance(value, bool) or is_name else "True, or the name of a database in the settings is needed"


def _tags(value: Any) -> str:
    if not isinstance(value, str):
        return 'a text is needed: "*", or "paid || refunded"'
    try:
        parse_tags(value)
    except MessageError as error:
        return str(error)
    return ""


def _sql(value: Any) -> str:
    return "" if value is None or (isinstance(value, str) and value.strip()) else "an SQL92 expression is needed"


def _function(value: Any) -> str:
    is_plain = callable(value) and not is_async_callable(value)
    return "" if is_plain else "a plain function is needed, since nobody would await it"


def _topic(value: Any) -> str:
    try:
        check_topic(value if isinstance(value, str) else "")
    except MessageError as error:
        return str(error)
    return ""


def _namespace(value: Any) -> str:
    if not isinstance(value, str) or "%" in value:
        return 'a text without % is needed, "" for none'
    try:
        check_group(value or "none")
    except MessageError as error:
        return str(error)
    return ""


def _strategy(value: Any) -> str:
    is_known = value in STRATEGIES if isinstance(value, str) else callable(value)
    return (
        "" if is_known else f"one of {', '.join(STRATEGIES)}, a strategy of remoting.allocation or a function is needed"
    )


def _exceptions(value: Any) -> str:
    given = value if isinstance(value, tuple) else (value,)
    is_right = all(isinstance(one, type) and issubclass(one, BaseException) for one in given)
    return "" if is_right else "an exception class, or a tuple of them, is needed"


def _delays(value: Any) -> str:
    needed = "a dict of exception classes and seconds above 0 is needed"
    if not isinstance(value, Mapping) or _exceptions(tuple(value)):
        return needed
    try:
        FailurePolicy(retry_delays_s=value)
    except (ValueError, TypeError):
        return needed
    return ""


def _breaker(value: Any) -> str:
    return "" if value is None or isinstance(value, Breaker) else "a Breaker(on=…) is needed"


def _start(value: Any) -> str:
    try:
        start_rule(value)
    except ValueError:
        return '"last", "first" or a datetime with its time zone is needed'
    return ""


OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        option.name: option
        for option in (
            Option("tags", Scope.LISTENER, ALL, _tags),
            Option("sql", Scope.LISTENER, None, _sql, {"tags": "a topic is filtered by one of them"}),
            Option("body", Scope.LISTENER, bytes, body_fault, fault_id="consumer.E006"),
            Option(
                "once",
                Scope.LISTENER,
                False,
                _database,
                {
                    "broadcasting": "what one instance has recorded, the others would skip",
                    "batch_size": "each message has its own transaction",
                },
                kind=Kind.PLAIN,
            ),
            Option("time_limit_s", Scope.LISTENER, None, seconds, kind=Kind.ASYNC),
            Option("batch_size", Scope.LISTENER, None, or_none(number(1, BATCH_SIZE_MAX)), {"orderly": _ONE_AT_A_TIME}),
            Option("dead_letter_on", Scope.LISTENER, (), _exceptions),
            Option(
                "retry_delays_s",
                Scope.LISTENER,
                {},
                _delays,
                {"orderly": _ITS_TURN, "broadcasting": "what fails there does not come again"},
            ),
            Option("wanted_instances", Scope.GROUP, 1, number(0, INSTANCES_MAX)),
            Option("threads", Scope.GROUP, 20, number(1, THREADS_MAX)),
            Option(
                "max_reconsume_times",
                Scope.GROUP,
                None,
                or_none(number(0, RECONSUME_TIMES_MAX)),
                {"broadcasting": "what fails there does not come again"},
            ),
            Option("consume_from", Scope.GROUP, "last", _start),
            Option("orderly", Scope.GROUP, False, one_of(True, False)),
            Option(
                "broadcasting", Scope.GROUP, False, one_of(True, False), {"strategy": "every member has all queues"}
            ),
            Option(
                "suspend_ms",
                Scope.GROUP,
                SUSPEND_MS,
                number(SUSPEND_MS_MIN, SUSPEND_MS_MAX),
                needs={"orderly": "only in order does a queue rest"},
            ),
            Option("breaker", Scope.GROUP, None, _breaker, {"orderly": _ITS_TURN}),
            Option(
                "consume_timeout_s",
                Scope.GROUP,
                CONSUME_TIMEOUT_MS // 1000,
                number(1, CONSUME_TIMEOUT_S_MAX),
                {"orderly": _ITS_TURN},
            ),
            Option("lag_objective_s", Scope.GROUP, None, or_none(number(1, LAG_OBJECTIVE_S_MAX))),
            Option("strategy", Scope.GROUP, "AVG", _strategy),
            Option("queues_changed", Scope.GROUP, None, or_none(_function)),
            Option("trace", Scope.GROUP, False, one_of(True, False)),
            Option("trace_topic", Scope.GROUP, TRACE_TOPIC, _topic, needs={"trace": "nothing is traced"}),
            Option("namespace", Scope.GROUP, "", _namespace),
            Option("pull_threshold_for_queue", Scope.GROUP, FLOW.messages_for_queue, number(*FOR_QUEUE)),
            Option("pull_threshold_for_topic", Scope.GROUP, None, or_none(number(*FOR_TOPIC))),
            Option(
                "pull_threshold_size_for_queue",
                Scope.GROUP,
                FLOW.bytes_for_queue // MIB,
                number(*SIZE_FOR_QUEUE_MIB),
            ),
            Option("pull_threshold_size_for_topic", Scope.GROUP, None, or_none(number(*SIZE_FOR_TOPIC_MIB))),
            Option(
                "consume_concurrently_max_span",
                Scope.GROUP,
                FLOW.span_max,
                number(*SPAN),
                {"orderly": "in order, a queue has no span"},
            ),
            Option("pull_batch_size", Scope.GROUP, FLOW.pull_batch_size, number(*PULL_BATCH)),
            Option("pull_interval_ms", Scope.GROUP, FLOW.pull_interval_ms, number(*PULL_INTERVAL_MS)),
        )
    }
)


def unknown_option(name: str) -> str:
    """Returns the error's text for a keyword argument that is no option, with the nearest one."""
    near = difflib.get_close_matches(name, OPTIONS, 1)
    return f"listener() has no option {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
