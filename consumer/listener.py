"""The decorator that declares a listener, and the registry of what was declared.

All listeners of one group form one consumer that subscribes to all their topics. Options of the whole group (instances,
threads, retries, start) can be given with any of its listeners; where two give one, it must be the same. The registry
is frozen when Django has started; only then everything is checked, so that an error can name both declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from consumer.engine.config import THREADS_MAX
from consumer.engine.listening import Listener, is_async_callable
from consumer.engine.message import Message
from consumer.engine.start_position import StartRule, start_rule
from consumer.engine.subscriptions import subscribe
from remoting.wire.errors import MessageError

F = TypeVar("F", bound=Callable[[Message], Any])

DEFAULT_INSTANCES = 1
DEFAULT_THREADS = 20
# RocketMQ's default: after so many retries the message is a dead letter.
DEFAULT_RECONSUME_TIMES = 16
DEFAULT_CONSUME_FROM = "last"
INSTANCES_MAX = 1000


class ListenerError(Exception):
    """Declarations contradict each other or RocketMQ's rules; the text names every error."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """The arguments of one `@listener(…)`; None for an option that was not given."""

    group: str
    topic: str
    tags: str
    function: Callable[[Message], Any]
    wanted_instances: int | None = None
    threads: int | None = None
    max_reconsume_times: int | None = None
    consume_from: str | datetime | None = None

    @property
    def where(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"{getattr(self.function, '__module__', '?')}.{name}"


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group as all its listeners together declare it. `listeners` by topic."""

    group: str
    listeners: Mapping[str, Listener]
    wanted_instances: int
    threads: int
    max_reconsume_times: int
    start: StartRule


class Registry:
    def __init__(self) -> None:
        self._declarations: list[Declaration] = []
        self._groups: Mapping[str, GroupSpec] | None = None

    @property
    def groups(self) -> Mapping[str, GroupSpec]:
        """Returns the groups by name. Raises RuntimeError before `freeze()`."""
        if self._groups is None:
            raise RuntimeError("listeners are known only after Django has started: call django.setup() first")
        return self._groups

    def declare(self, declaration: Declaration) -> None:
        """Raises ListenerError after `freeze()`."""
        if self._groups is not None:
            raise ListenerError(
                f"{declaration.where} is declared after the start: put it into a module named `listeners` of an"
                " installed app, so that every process knows it"
            )
        self._declarations.append(declaration)

    def freeze(self) -> None:
        """Checks all declarations. Raises ListenerError, which names every error."""
        by_group: dict[str, list[Declaration]] = {}
        for declaration in self._declarations:
            by_group.setdefault(declaration.group, []).append(declaration)
        faults: list[str] = []
        specs = {group: _group_spec(group, declared, faults) for group, declared in sorted(by_group.items())}
        if faults:
            raise ListenerError("\n".join(faults))
        self._groups = MappingProxyType(specs)


registry = Registry()


def listener(
    *,
    group: str,
    topic: str,
    tags: str = "*",
    wanted_instances: int | None = None,
    threads: int | None = None,
    max_reconsume_times: int | None = None,
    consume_from: str | datetime | None = None,
) -> Callable[[F], F]:
    """Declares the decorated function as the listener of `group` on `topic`, and returns it unchanged.

    The function takes a Message. An `async def` runs on the event loop, any other in a thread. When it returns, the
    message is consumed; when it raises, the message comes again after 10 s, 30 s, 1 min …, and after
    `max_reconsume_times` (16) retries it is a dead letter. Raise `Later` for a retry without a traceback in the log.

    `tags`: "*", or "paid || refunded". Of the whole group: `wanted_instances` (1) that the workers keep running,
    `threads` (20) listeners at once in each, `consume_from` "last" (new messages), "first", or a datetime: where the
    group starts on a queue for which it has no committed offset.
    """

    def declare(function: F) -> F:
        registry.declare(
            Declaration(group, topic, tags, function, wanted_instances, threads, max_reconsume_times, consume_from)
        )
        return function

    return declare


def _group_spec(group: str, declared: list[Declaration], faults: list[str]) -> GroupSpec:
    """Adds errors to `faults`; the result is valid only without any."""
    by_topic: dict[str, Declaration] = {}
    for declaration in declared:
        other = by_topic.setdefault(declaration.topic, declaration)
        if other is not declaration:
            faults.append(
                f"group {group!r} listens twice to topic {declaration.topic!r}: {other.where} and {declaration.where};"
                " make them one listener, or two groups"
            )
        _check_names(declaration, faults)
    start = StartRule()
    try:
        start = start_rule(_common_value("consume_from", declared, DEFAULT_CONSUME_FROM, faults))
    except ValueError as error:
        faults.append(f"group {group!r}: {error}")
    return GroupSpec(
        group=group,
        listeners=MappingProxyType({topic: _listener(declaration) for topic, declaration in by_topic.items()}),
        wanted_instances=_number("wanted_instances", declared, DEFAULT_INSTANCES, 0, INSTANCES_MAX, faults),
        threads=_number("threads", declared, DEFAULT_THREADS, 1, THREADS_MAX, faults),
        max_reconsume_times=_number("max_reconsume_times", declared, DEFAULT_RECONSUME_TIMES, 0, 2**31 - 1, faults),
        start=start,
    )


def _check_names(declaration: Declaration, faults: list[str]) -> None:
    try:
        subscribe(declaration.group, {declaration.topic: declaration.tags}, 0)
    except MessageError as error:
        faults.append(f"{declaration.where}: {error}")


def _common_value(option: str, declared: list[Declaration], default: Any, faults: list[str]) -> Any:
    """Returns the value that the group's listeners give; adds a fault where two differ."""
    given = [declaration for declaration in declared if getattr(declaration, option) is not None]
    if not given:
        return default
    first = given[0]
    for other in given[1:]:
        if getattr(other, option) != getattr(first, option):
            faults.append(
                f"group {first.group!r} has two values of {option}: {getattr(first, option)!r} in {first.where} and"
                f" {getattr(other, option)!r} in {other.where}; give it once"
            )
    return getattr(first, option)


def _number(option: str, declared: list[Declaration], default: int, low: int, high: int, faults: list[str]) -> int:
    value = _common_value(option, declared, default, faults)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        faults.append(f"group {declared[0].group!r}: {option} is {value!r}; a number from {low} to {high} is needed")
        return default
    return value


def _listener(declaration: Declaration) -> Listener:
    return Listener(
        topic=declaration.topic,
        call=declaration.function,
        tags=declaration.tags,
        is_async=is_async_callable(declaration.function),
    )
