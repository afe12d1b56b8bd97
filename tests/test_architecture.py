"""Rules that a machine can hold: directions of imports, names, docstrings (docs/ARCHITECTURE.md, CONTRIBUTING.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("remoting", "broker", "consumer", "mqadmin", "examples", "bench")
DJANGO_SIDE = (
    "django",
    "celery",
    "channels",
    "channels_redis",
    "django_celery_beat",
    "kombu",
    "django_htmx",
    "csp",
    "allauth",
)
OUR_ROOMS = ("remoting", "broker", "consumer", "mqadmin", "examples", "bench", "tests")

FACES = ("mqadmin.console", "mqadmin.api", "mqadmin.live")
# What reaches a broker; the rest of `remoting` is names and values.
TALKING = (
    "remoting.client",
    "remoting.client_connection",
    "remoting.complaints",
    "remoting.connecting",
    "remoting.connection",
    "remoting.memory_budget",
    "remoting.requester",
    "remoting.server",
    "remoting.server_connection",
)

# Where the broker is put together.
WIRING = ("broker.engine.broker", "broker.engine.pipeline", "broker.engine.wiring", "broker.engine.runtime")
# What keeps settings on the disk.
KEEPING = tuple(f"broker.engine.{name}" for name in ("config", "config_files", "config_table", "event_loop"))
# What handles requests.
REQUESTS = ("broker.engine.processors", "broker.engine.serving")

# Package → what must not be imported in it (a prefix of dotted names) → where it may all the same.
FORBIDDEN: dict[str, tuple[str, ...]] = {
    "remoting.wire": ("remoting",),
    "remoting.allocation": ("remoting",),
    "remoting.sql92": ("remoting",),
    # The shells know of no client.
    **dict.fromkeys(TALKING[1:], ("remoting.client", "remoting.allocation")),
    # Spark is for those who ask for it.
    "remoting.client": ("remoting.spark", "pyspark", "pyarrow"),
    "remoting": ("broker", "consumer", "mqadmin", "examples", "bench", *DJANGO_SIDE),
    "broker.engine": ("broker", "consumer", "mqadmin", "examples", "bench", "remoting.client", *DJANGO_SIDE),
    # Inside the broker: the store and the filters know nobody; what is built on the store knows no request.
    "broker.engine.store": ("broker.engine",),
    "broker.engine.filters": ("broker.engine",),
    "broker.engine.schedule": ("broker.engine",),
    "broker.engine.retention": ("broker.engine",),
    "broker.engine.topics": ("broker.engine",),
    "broker.engine.groups": ("broker.engine",),
    "broker.engine.serving": ("broker.engine",),
    "broker.engine.sending": ("broker.engine.watch", "broker.engine.name_server", *REQUESTS, *WIRING),
    "broker.engine.transactions": ("broker.engine.watch", "broker.engine.name_server", *REQUESTS, *WIRING),
    "broker.engine.watch": ("broker.engine.sending", "broker.engine.name_server", *REQUESTS, *WIRING),
    "broker.engine.name_server": ("broker.engine",),
    "broker.engine.processors": ("broker.engine.name_server", *WIRING),
    "consumer.engine": ("broker", "consumer", "mqadmin", "examples", "bench", *DJANGO_SIDE),
    "broker": ("consumer", "mqadmin", "examples", "bench"),
    "consumer": ("broker", "mqadmin", "examples", "bench"),
    "mqadmin": ("broker.engine", "consumer.engine", "remoting.spark", "examples", "bench"),
    "mqadmin.supervision": DJANGO_SIDE,
    # Faces know selectors and actions, not each other and no broker; subjects know no face.
    "mqadmin.console": ("mqadmin.api", "mqadmin.live", *TALKING),
    "mqadmin.api": ("mqadmin.console", "mqadmin.live", *TALKING),
    "mqadmin.live": ("mqadmin.console", "mqadmin.api", *TALKING),
    # Subjects know those below them: what is known, how it is observed, what follows from it.
    "mqadmin.clusters": ("mqadmin",),
    "mqadmin.observing": ("mqadmin",),
    "mqadmin.lag": ("mqadmin",),
    "mqadmin.rebalances": ("mqadmin",),
    "mqadmin.objectives": ("mqadmin", *TALKING),
    # What an action is knows no subject but clusters, and how these are asked.
    "mqadmin.actions": ("mqadmin", *TALKING),
    # Who runs actions knows who may, and writes the audit.
    "mqadmin.action_runs": ("mqadmin", *TALKING),
    # Who may what is asked everywhere; changing it is actions.
    "mqadmin.people": ("mqadmin", *TALKING),
    "mqadmin.audit": ("mqadmin", *TALKING),
    "mqadmin.ownership": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", "mqadmin.lag", *TALKING),
    "mqadmin.configuration": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", *TALKING),
    "mqadmin.metrics": (*FACES, "mqadmin.actions", *TALKING),
    "mqadmin.producers": (*FACES, "mqadmin.actions", "mqadmin.lag", "mqadmin.rebalances", *TALKING),
    "mqadmin.deadletters": ("mqadmin", *TALKING),
    "mqadmin.retries": ("mqadmin", *TALKING),
    "mqadmin.deadletter_rules": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.lag", *TALKING),
    "mqadmin.reports": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", "mqadmin.observing", *TALKING),
    "mqadmin.alerts": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", "mqadmin.observing", *TALKING),
    "mqadmin.mending": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", "mqadmin.lag", *TALKING),
    "mqadmin.replay_files": (*FACES, "mqadmin.replays", "mqadmin.hosting", "mqadmin.topics", "mqadmin.lag", *TALKING),
    "mqadmin.replays": (*FACES, "mqadmin.hosting", "mqadmin.lag", "mqadmin.rebalances"),
    "mqadmin.subscriptions": ("mqadmin", *TALKING),
    "mqadmin.hosting": (*FACES, "mqadmin.topics", "mqadmin.groups", "mqadmin.lag", "mqadmin.rebalances"),
    "mqadmin.topics": (*FACES, "mqadmin.hosting", "mqadmin.groups", "mqadmin.lag", "mqadmin.rebalances"),
    "mqadmin.brokers": (
        *FACES,
        "mqadmin.hosting",
        "mqadmin.topics",
        "mqadmin.groups",
        "mqadmin.cluster_settings",
        "mqadmin.lag",
        "mqadmin.rebalances",
    ),
    "mqadmin.cluster_settings": (
        *FACES,
        "mqadmin.hosting",
        "mqadmin.topics",
        "mqadmin.groups",
        "mqadmin.lag",
        "mqadmin.rebalances",
    ),
    "mqadmin.groups": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.lag", "mqadmin.rebalances"),
    "mqadmin.jobs": (*FACES, "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", "mqadmin.lag", *TALKING),
    "mqadmin.flows": (*FACES, "mqadmin.actions", "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", *TALKING),
    "mqadmin.events": (*FACES, "mqadmin.actions", "mqadmin.hosting", "mqadmin.topics", "mqadmin.groups", *TALKING),
    "mqadmin.tokens": (
        *FACES,
        "mqadmin.hosting",
        "mqadmin.topics",
        "mqadmin.groups",
        "mqadmin.lag",
        "mqadmin.rebalances",
        *TALKING,
    ),
    "examples": ("broker", "mqadmin", "bench", "consumer.engine"),
}
# An engine may import itself. The words for what changed are spoken by those who tell and those who show.
ALLOWED: dict[str, tuple[str, ...]] = {
    "remoting.wire": ("remoting.wire",),
    "remoting.allocation": ("remoting.allocation", "remoting.wire"),
    "remoting.sql92": ("remoting.sql92", "remoting.wire"),
    "broker.engine": ("broker.engine",),
    "broker.engine.store": ("broker.engine.store",),
    "broker.engine.filters": ("broker.engine.filters",),
    "broker.engine.schedule": ("broker.engine.schedule", "broker.engine.store", "broker.engine.config_files"),
    "broker.engine.retention": (
        "broker.engine.retention",
        "broker.engine.store",
        "broker.engine.schedule.due_tasks",
        "broker.engine.config",
    ),
    "broker.engine.topics": ("broker.engine.topics", *KEEPING),
    "broker.engine.groups": (
        "broker.engine.groups",
        "broker.engine.topics",
        *KEEPING,
    ),
    # Requests on their way know what they wait for.
    "broker.engine.serving": ("broker.engine.serving", "broker.engine.store.values", "broker.engine.event_loop"),
    "broker.engine.name_server": (
        "broker.engine.name_server",
        "broker.engine.topics",
        "broker.engine.serving.requests",
        "broker.engine.config",
        "broker.engine.config_files",
    ),
    "consumer.engine": ("consumer.engine",),
    "mqadmin.console": (
        "mqadmin.live.events",
        "mqadmin.live.regions",
        "mqadmin.live.revisions",
        "mqadmin.live.subscriptions",
    ),
    "mqadmin.api": ("mqadmin.live.events", "mqadmin.live.revisions"),
    "mqadmin.clusters": ("mqadmin.clusters",),
    "mqadmin.observing": ("mqadmin.observing", "mqadmin.clusters"),
    # They hear of what was observed, and know nothing of how.
    "mqadmin.lag": (
        "mqadmin.lag",
        "mqadmin.clusters",
        "mqadmin.observing.signals",
        "mqadmin.objectives.selectors",
        "mqadmin.objectives.values",
    ),
    "mqadmin.objectives": (
        "mqadmin.objectives",
        "mqadmin.clusters",
        "mqadmin.actions.declaration",
        "mqadmin.actions.registry",
    ),
    "mqadmin.rebalances": (
        "mqadmin.rebalances",
        "mqadmin.clusters",
        "mqadmin.observing.signals",
        "mqadmin.observing.observation",
        # What a pause is judged by, and what was not sampled.
        "mqadmin.lag.hot_window",
        "mqadmin.lag.packing",
        "mqadmin.lag.retention",
        "mqadmin.lag.lateness",
    ),
    # Changes go through the registry; what is there is asked for all at once.
    "mqadmin.configuration": ("mqadmin.topics.settings", "mqadmin.groups.settings"),
    "mqadmin.subscriptions": (
        "mqadmin.subscriptions",
        "mqadmin.clusters",
        "mqadmin.observing.signals",
        "mqadmin.observing.gateway",
        "mqadmin.observing.costs",
        # How much a conflict may have skipped.
        "mqadmin.lag.passed",
    ),
    "mqadmin.deadletters": (
        "mqadmin.deadletters",
        "mqadmin.clusters",
        "mqadmin.observing.signals",
        "mqadmin.observing.gateway",
        "mqadmin.actions.arguments",
        "mqadmin.people.current_caller",
        "mqadmin.actions.declaration",
        "mqadmin.actions.registry",
        "mqadmin.audit.models",
        "mqadmin.audit.selectors",
        "mqadmin.groups.rules",
        "mqadmin.rebalances.selectors",
        "mqadmin.people.masking",
        "mqadmin.people.roles",
        "mqadmin.people.words",
    ),
    "mqadmin.retries": (
        "mqadmin.retries",
        "mqadmin.clusters",
        "mqadmin.deadletters",
        "mqadmin.observing.gateway",
    ),
    "mqadmin.actions": ("mqadmin.actions", "mqadmin.clusters", "mqadmin.observing.gateway"),
    "mqadmin.action_runs": (
        "mqadmin.action_runs",
        "mqadmin.actions",
        "mqadmin.audit",
        "mqadmin.clusters",
        "mqadmin.people.access",
        "mqadmin.people.caller",
        "mqadmin.people.current_caller",
    ),
    # Its entries are written by runs of actions; removing old ones is an action.
    "mqadmin.audit": ("mqadmin.audit", "mqadmin.actions.declaration", "mqadmin.actions.registry"),
    "mqadmin.people": (
        "mqadmin.people",
        "mqadmin.clusters.models",
        "mqadmin.actions.declaration",
        "mqadmin.actions.registry",
        "mqadmin.actions.switches",
    ),
}
# The wire core touches neither socket nor file nor event loop. `time` and `os` serve the message id's clock and pid.
PURE_CORE_FORBIDDEN = ("asyncio", "socket", "selectors", "threading", "subprocess", "pathlib", "io", "ssl", "logging")
# inet_pton and inet_ntop are arithmetic on text.
PURE_CORE_ALLOWED = {"remoting.wire.message_id": ("socket",)}

VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "impl", "base"})
# Django finds these by their names, whatever we think of them.
DJANGO_FOLDERS = frozenset({"migrations"})
DOCSTRING_FROM_LINES = 40


@dataclass(frozen=True, eq=False)
class Module:
    path: Path
    name: str
    text: str
    tree: ast.Module

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))


@dataclass(frozen=True)
class Import:
    """`target` is the dotted name that is asked for: for `from a import b` that is a.b."""

    target: str
    line: int
    is_for_types_only: bool
    is_inside_function: bool
    is_relative: bool


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text()
            found.append(Module(path, name, text, ast.parse(text)))
    return tuple(found)


@cache
def imports(module: Module) -> tuple[Import, ...]:
    return tuple(_imports(module, module.tree, for_types=False, inside=False))


def _imports(module: Module, node: ast.AST, *, for_types: bool, inside: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        # There is no statement in an expression, and most of a module is expressions.
        if isinstance(child, ast.expr):
            continue
        for target in _targets(module, child):
            is_relative = bool(getattr(child, "level", 0))
            yield Import(target, child.lineno, for_types, inside, is_relative)  # type: ignore[attr-defined]
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        is_type_block = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        yield from _imports(module, child, for_types=for_types or is_type_block, inside=inside or is_function)


def _targets(module: Module, node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=origin, names=names, level=level):
            package = module.name.split(".") if module.path.stem == "__init__" else module.name.split(".")[:-1]
            base = ".".join(package[: len(package) - level + 1]) if level else ""
            start = ".".join(part for part in (base, origin) if part)
            return [f"{start}.{alias.name}" for alias in names]
        case _:
            return []


def is_under(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def complain(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


def test_there_are_modules_to_look_at() -> None:
    assert {room for room in ROOMS if any(is_under(module.name, room) for module in modules())} >= {
        "remoting",
        "broker",
    }


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_go_in_the_directions_of_the_design(package: str) -> None:
    """Imports for types only count as well: who names a type knows of its room."""
    complain(
        [
            f"{module}:{one.line}: {package} must not import {one.target}"
            for module in modules()
            if is_under(module.name, package)
            for one in imports(module)
            if any(is_under(one.target, forbidden) for forbidden in FORBIDDEN[package])
            and not any(is_under(one.target, allowed) for allowed in ALLOWED.get(package, ()))
        ]
    )


def subject_of(name: str) -> str:
    """The folder of `mqadmin/` that a module is in; "" for one that is in none."""
    folder = ".".join(name.split(".")[:2])
    return folder if is_under(folder, "mqadmin") and (ROOT / folder.replace(".", "/")).is_dir() else ""


def test_no_import_between_subjects_of_the_console_runs_back() -> None:
    """Whatever a subject builds on, that knows nothing of it: neither directly nor by way of others."""
    known: dict[str, set[str]] = {}
    for module in modules():
        if subject := subject_of(module.name):
            known.setdefault(subject, set()).update(subject_of(one.target) for one in imports(module))
    graph = {subject: targets - {subject, "", "mqadmin"} for subject, targets in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' ← '.join(error.args[1])}")


def test_only_the_gateway_of_the_console_talks_to_brokers() -> None:
    """What a caller must be able to catch, and what it hands over, are values."""
    values = ("remoting.client.errors", "remoting.client.send_result")
    complain(
        [
            f"{module}:{one.line}: ask mqadmin.observing.gateway, not {one.target}"
            for module in modules()
            if is_under(module.name, "mqadmin") and not is_under(module.name, "mqadmin.observing.gateway")
            for one in imports(module)
            if any(is_under(one.target, talking) for talking in TALKING)
            and not any(is_under(one.target, value) for value in values)
        ]
    )


def test_the_wire_core_touches_no_socket_file_or_loop() -> None:
    complain(
        [
            f"{module}:{one.line}: the wire core must not import {one.target}"
            for module in modules()
            if is_under(module.name, "remoting.wire")
            for one in imports(module)
            for forbidden in PURE_CORE_FORBIDDEN
            if is_under(one.target, forbidden) and forbidden not in PURE_CORE_ALLOWED.get(module.name, ())
        ]
    )


def test_no_program_imports_the_tests() -> None:
    complain(
        [
            f"{module}:{one.line}: imports {one.target}"
            for module in modules()
            if not is_under(module.name, "bench")
            for one in imports(module)
            if is_under(one.target, "tests")
        ]
    )


def test_no_file_or_folder_has_a_name_that_says_nothing() -> None:
    complain([f"{module}: say what it does" for module in modules() if VAGUE_NAMES & set(module.name.split("."))])


def test_an_import_inside_a_function_says_why() -> None:
    """A comment on its line, or on the line above, gives the reason; dodging a cycle is none."""
    complaints = []
    for module in modules():
        lines = module.text.splitlines()
        for one in imports(module):
            own, above = lines[one.line - 1], lines[one.line - 2].strip()
            if one.is_inside_function and "#" not in own and not above.startswith("#"):
                complaints.append(f"{module}:{one.line}: import of {one.target} inside a function without a reason")
    complain(sorted(set(complaints)))


def test_modules_of_our_own_import_each_other_by_full_names() -> None:
    complain(
        [
            f"{module}:{one.line}: write the full name of the module"
            for module in modules()
            for one in imports(module)
            if one.is_relative
        ]
    )


def test_a_module_of_more_than_40_lines_opens_with_what_it_is() -> None:
    complain(
        [
            f"{module}: {module.text.count(chr(10))} lines and no docstring"
            for module in modules()
            if module.text.count("\n") > DOCSTRING_FROM_LINES
            and not DJANGO_FOLDERS & set(module.path.parts)
            and ast.get_docstring(module.tree) is None
        ]
    )


def test_no_work_is_left_for_later_in_comments() -> None:
    complain(
        [
            f"{module}:{number}: {line.strip()}"
            for module in modules()
            for number, line in enumerate(module.text.splitlines(), 1)
            if any(word in line for word in ("TODO", "FIXME", "XXX:", "HACK"))
        ]
    )
