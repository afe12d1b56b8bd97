"""The decorator that declares a listener, and the registry of what was declared.

All listeners of one group form one consumer that subscribes to all their topics. The options are a table
(`options.py`). The registry is frozen when Django has started; only then everything is checked, so that an error can
name both declarations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar, Unpack, cast

from consumer.bodies import decoder
from consumer.engine.failure_policy import FailurePolicy
from consumer.engine.listening import Listener, is_async_callable
from consumer.engine.subscriptions import check_consumer_group
from consumer.group_key import DEFAULT_CLUSTER, group_key
from consumer.options import OPTIONS, GroupOptions, Kind, ListenerOptions, Option, Options, Scope, unknown_option
from remoting.wire.errors import MessageError
from remoting.wire.names import check_topic, retry_topic, with_namespace

F = TypeVar("F", bound=Callable[..., Any])


class ListenerError(Exception):
    """Declarations contradict each other or RocketMQ's rules; the text names every error."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with declarations, with the id of Django's system check (`checks.py` has the list)."""

    id: str
    text: str


def function_name(function: Callable[..., Any]) -> str:
    """Returns the name with the module, as error texts, traces and metrics have it."""
    name = getattr(function, "__qualname__", repr(function))
    return f"{getattr(function, '__module__', '?')}.{name}"


@dataclass(frozen=True, slots=True)
class Declaration:
    """The arguments of one `@listener(…)`; `given` has only the options that were given."""

    group: str
    topic: str
    function: Callable[..., Any]
    given: Options = field(default_factory=Options)
    cluster: str = DEFAULT_CLUSTER

    @property
    def key(self) -> str:
        return group_key(self.group, self.cluster)

    @property
    def where(self) -> str:
        return function_name(self.function)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group on a cluster as all its listeners together declare it. Each option has a value.

    `group` as brokers know it: with its namespace. `listeners` and `listener_options` by topic, as it was declared.
    """

    group: str
    listeners: Mapping[str, Listener]
    options: GroupOptions
    listener_options: Mapping[str, ListenerOptions]
    cluster: str = DEFAULT_CLUSTER

    @property
    def key(self) -> str:
        return group_key(self.group, self.cluster)


class Registry:
    """`table`: the options there are."""

    def __init__(self, table: Mapping[str, Option] = OPTIONS) -> None:
        self._table = table
        self._declarations: list[Declaration] = []
        self._groups: Mapping[str, GroupSpec] | None = None
        self._faults: tuple[Fault, ...] = ()

    @property
    def groups(self) -> Mapping[str, GroupSpec]:
        """Returns the groups by their keys (`consumer/group_key.py`).

        Raises RuntimeError before `freeze()`, and ListenerError, which names every error in the declarations: nothing
        is consumed while there is one.
        """
        if self._groups is None:
            raise RuntimeError("listeners are known only after Django has started: call django.setup() first")
        if self._faults:
            raise ListenerError("\n".join(f"({fault.id}) {fault.text}" for fault in self._faults))
        return self._groups

    @property
    def faults(self) -> tuple[Fault, ...]:
        return self._faults

    def declare(self, declaration: Declaration) -> None:
        """Raises ListenerError after `freeze()`, TypeError for an option that does not exist."""
        for name in declaration.given:
            if name not in self._table:
                raise TypeError(unknown_option(name))
        if self._groups is not None:
            raise ListenerError(
                f"{declaration.where} is declared after the start: put it into a module named `listeners` of an"
                " installed app, so that every process knows it"
            )
        self._declarations.append(declaration)

    def freeze(self, clusters: Collection[str] = ()) -> None:
        """Checks all declarations; only `clusters` may be named. `faults` has what is wrong."""
        by_key: dict[str, list[Declaration]] = {}
        faults: list[Fault] = []
        for declaration in self._declarations:
            if unusable := list(_wrong_types(declaration)):
                faults.extend(unusable)
                continue
            by_key.setdefault(declaration.key, []).append(declaration)
            faults.extend(_wrong_cluster(declaration, clusters))
        specs: dict[str, GroupSpec] = {}
        for key, declared in sorted(by_key.items()):
            spec = _group_spec(key, declared, self._table, faults)
            if specs.setdefault(spec.key, spec) is not spec:
                text = f"group {spec.key!r} is declared with a namespace and by its whole name: choose one way"
                faults.append(Fault("consumer.E005", text))
        self._faults = tuple(faults)
        self._groups = MappingProxyType(specs)


registry = Registry()


def listener(*, group: str, topic: str, cluster: str = DEFAULT_CLUSTER, **options: Unpack[Options]) -> Callable[[F], F]:
    """Declares the decorated function as the listener of `group` on `topic`, and returns it unchanged.

    The function takes a Message. An `async def` runs on the event loop, any other in a thread. When it returns, the
    message is consumed; when it raises, the message comes again after 10 s, 30 s, 1 min …, and after
    `max_reconsume_times` retries it is a dead letter. Raise `Later` for a retry without a traceback in the log.

    `cluster`: a name of the setting MQADMIN_CLUSTERS; without it, the cluster behind MQADMIN_NAMESRV. The same group on
    two clusters is two groups. `consumer.options` says what each option means and has its default.
    """

    def declare(function: F) -> F:
        registry.declare(Declaration(group, topic, function, options, cluster))
        return function

    return declare


@dataclass(frozen=True, slots=True)
class _Value:
    """An option's value, and the declaration that gives it; None where it is the default."""

    option: Option
    value: Any
    declaration: Declaration | None

    @property
    def is_default(self) -> bool:
        return bool(self.value == self.option.default)


def _group_spec(key: str, declared: list[Declaration], table: Mapping[str, Option], faults: list[Fault]) -> GroupSpec:
    """Makes it of the declarations of one key. Adds errors to `faults`; the result is valid only without any."""
    by_topic: dict[str, Declaration] = {}
    for declaration in declared:
        other = by_topic.setdefault(declaration.topic, declaration)
        if other is not declaration:
            text = (
                f"group {key!r} listens twice to topic {declaration.topic!r}: {other.where} and {declaration.where};"
                " make them one listener, or two groups"
            )
            faults.append(Fault("consumer.E002", text))
        faults.extend(_wrong_names(declaration))
        faults.extend(_wrong_function(declaration))
    of_group = _values_of_group(declared, table, faults)
    faults.extend(_wrong_values(f"group {key!r}", of_group))
    listeners: dict[str, Listener] = {}
    listener_options: dict[str, ListenerOptions] = {}
    contradictions: list[Fault] = []
    for topic, declaration in by_topic.items():
        of_listener = _values_of_listener(declaration, table)
        wrong = [*_wrong_values(declaration.where, of_listener), *_wrong_kind(declaration, of_listener)]
        faults.extend(wrong)
        contradictions.extend(_contradictions(key, of_listener | of_group))
        if not wrong:
            listener_options[topic] = cast(ListenerOptions, _plain(of_listener))
            listeners[topic] = _listener(declaration, listener_options[topic])
    faults.extend(dict.fromkeys(contradictions))
    options = cast(GroupOptions, _plain(of_group))
    return GroupSpec(
        group=with_namespace(str(options.get("namespace", "")), declared[0].group),
        cluster=declared[0].cluster,
        listeners=MappingProxyType(listeners),
        options=options,
        listener_options=MappingProxyType(listener_options),
    )


def _wrong_types(declaration: Declaration) -> Iterator[Fault]:
    """What nothing else can be judged with, such as a name from a setting that is not set."""
    given: Mapping[str, object] = {
        name: getattr(declaration, name) for name in ("group", "topic", "cluster", "function")
    }
    for name in ("group", "topic", "cluster"):
        value = given[name]
        if not isinstance(value, str):
            yield Fault("consumer.E001", f"{declaration.where}: {name} is {value!r}; a text is needed")
    if not callable(given["function"]):
        text = (
            f"the listener of group {declaration.group!r} on topic {declaration.topic!r} is {declaration.function!r};"
            " a function is needed"
        )
        yield Fault("consumer.E007", text)


def _wrong_cluster(declaration: Declaration, clusters: Collection[str]) -> Iterator[Fault]:
    if declaration.cluster not in (DEFAULT_CLUSTER, *clusters):
        text = (
            f"{declaration.where}: the cluster {declaration.cluster!r} is not in the setting MQADMIN_CLUSTERS, which"
            f" names: {', '.join(sorted(clusters)) or 'none'}"
        )
        yield Fault("consumer.E009", text)


def _wrong_names(declaration: Declaration) -> Iterator[Fault]:
    try:
        check_consumer_group(declaration.group)
        check_topic(declaration.topic)
    except MessageError as error:
        yield Fault("consumer.E001", f"{declaration.where}: {error}")
    if declaration.topic == retry_topic(declaration.group):
        text = f"{declaration.where}: topic {declaration.topic!r} has the group's own retries, which it gets anyway"
        yield Fault("consumer.E001", text)


def _wrong_function(declaration: Declaration) -> Iterator[Fault]:
    """What cannot be called with one message, or would do nothing when it is called."""
    function = declaration.function
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        text = f"{declaration.where} yields: it would not run when it is called; return, or raise, instead"
        yield Fault("consumer.E007", text)
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        text = f"{declaration.where} cannot be called with one argument, the message: def {_signature(declaration)}"
        yield Fault("consumer.E007", text)
    except ValueError:  # a function in C that tells nothing of its arguments
        return


def _signature(declaration: Declaration) -> str:
    return f"{getattr(declaration.function, '__name__', '')}{inspect.signature(declaration.function)}"


def _wrong_kind(declaration: Declaration, values: Mapping[str, _Value]) -> Iterator[Fault]:
    """What only an `async def`, or only a plain function, can do."""
    is_async = is_async_callable(declaration.function)
    for name, value in values.items():
        kind = value.option.kind
        if kind is not Kind.ANY and is_async != (kind is Kind.ASYNC) and not value.is_default:
            text = f"{declaration.where}: {name}={value.value!r} needs {kind.value}"
            yield Fault("consumer.E007", text)


def _values_of_group(
    declared: list[Declaration], table: Mapping[str, Option], faults: list[Fault]
) -> dict[str, _Value]:
    """Returns what the group's listeners give together; adds a fault where two differ."""
    values: dict[str, _Value] = {}
    for option in _of(Scope.GROUP, table):
        name = option.name
        values[name] = _Value(option, option.default, None)
        for declaration in declared:
            given: Mapping[str, Any] = declaration.given
            if name not in given:
                continue
            first = values[name]
            if first.declaration is None:
                values[name] = _Value(option, given[name], declaration)
            elif given[name] != first.value:
                text = (
                    f"group {declaration.key!r} has two values of {name}: {first.value!r} in"
                    f" {first.declaration.where} and {given[name]!r} in {declaration.where}; give it once"
                )
                faults.append(Fault("consumer.E003", text))
    return values


def _values_of_listener(declaration: Declaration, table: Mapping[str, Option]) -> dict[str, _Value]:
    given: Mapping[str, Any] = declaration.given
    return {
        option.name: _Value(
            option, given.get(option.name, option.default), declaration if option.name in given else None
        )
        for option in _of(Scope.LISTENER, table)
    }


def _of(scope: Scope, table: Mapping[str, Option]) -> list[Option]:
    return [option for option in table.values() if option.scope is scope]


def _wrong_values(whose: str, values: Mapping[str, _Value]) -> Iterator[Fault]:
    for name, value in values.items():
        if value.declaration is not None and (needed := value.option.check(value.value)):
            yield Fault(value.option.fault_id, f"{whose}: {name} is {value.value!r}; {needed}")


def _contradictions(key: str, values: Mapping[str, _Value]) -> Iterator[Fault]:
    for name, value in values.items():
        for other_name, why in value.option.not_with.items():
            one, other = value.declaration, values[other_name].declaration
            if one is None or other is None or value.is_default or values[other_name].is_default:
                continue
            text = (
                f"group {key!r}: {name}={value.value!r} in {one.where} contradicts"
                f" {other_name}={values[other_name].value!r} in {other.where}: {why}"
            )
            yield Fault("consumer.E005", text)
        for other_name, why in value.option.needs.items():
            other_value = values[other_name]
            if value.declaration is not None and not value.is_default and other_value.is_default:
                text = (
                    f"group {key!r}: {name}={value.value!r} in {value.declaration.where} does nothing with"
                    f" {other_name}={other_value.value!r}: {why}"
                )
                yield Fault("consumer.E005", text)


def _plain(values: Mapping[str, _Value]) -> dict[str, Any]:
    return {name: value.value for name, value in values.items()}


def _listener(declaration: Declaration, options: ListenerOptions) -> Listener:
    return Listener(
        topic=declaration.topic,
        call=declaration.function,
        tags=options["tags"],
        sql=options["sql"],
        is_async=is_async_callable(declaration.function),
        decode=decoder(options["body"]),
        batch_size=options["batch_size"],
        failures=_failure_policy(options),
        name=declaration.where,
    )


def _failure_policy(options: ListenerOptions) -> FailurePolicy:
    dead = options["dead_letter_on"]
    return FailurePolicy(
        dead_letter_on=dead if isinstance(dead, tuple) else (dead,), retry_delays_s=options["retry_delays_s"]
    )
