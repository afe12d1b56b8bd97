"""What each loops worker's code declares, and where workers differ.

All members of a group must subscribe to the same: with different code on two machines, as in a deploy that one of them
missed, RocketMQ lets one subscription win, and messages are lost to the filter of the other. So each worker writes down
what its code declares, and differences are named.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils import timezone

from consumer.hosting.leases import Worker
from consumer.hosting.supervision import SILENT_AFTER
from consumer.listener import GroupSpec, function_name
from consumer.models import LoopsWorker

logger = logging.getLogger(__name__)

# What a worker declares of a group that its code does not know.
NOTHING = ""
TEXT_CHARS_MAX = 2000


@dataclass(frozen=True, slots=True)
class Difference:
    """`declared`: each text that workers have of the group → their nodes, most first; NOTHING where it is unknown."""

    group: str
    declared: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        said = "; ".join(f"{text or 'nothing'} on {', '.join(nodes)}" for text, nodes in self.declared.items())
        return f"group {self.group} is declared differently: {said}"


def declared(specs: Mapping[str, GroupSpec]) -> dict[str, str]:
    """Returns what all members of each group must have in common, as text, by the group's key."""
    return {key: _text(spec)[:TEXT_CHARS_MAX] for key, spec in specs.items()}


def write_down(worker: Worker, specs: Mapping[str, GroupSpec]) -> None:
    """Writes what the worker's code declares into its row; the log names where other workers' code differs."""
    LoopsWorker.objects.filter(node=worker.node, boot=worker.boot).update(declared=declared(specs))
    for difference in differences_now():
        logger.warning("%s; deploy the same code to all of them", difference)


def differences_now() -> list[Difference]:
    """Compares the workers that live and are not about to stop. One query."""
    alive = LoopsWorker.objects.filter(is_stopping=False, heartbeat_at__gt=timezone.now() - SILENT_AFTER)
    return differences(dict(alive.exclude(declared={}).values_list("node", "declared")))


def differences(by_node: Mapping[str, Mapping[str, str]]) -> list[Difference]:
    """Compares what the workers declare; empty while all declare the same."""
    found: list[Difference] = []
    for group in sorted({group for texts in by_node.values() for group in texts}):
        nodes: dict[str, list[str]] = defaultdict(list)
        for node in sorted(by_node):
            nodes[by_node[node].get(group, NOTHING)].append(node)
        if len(nodes) > 1:
            most_first = sorted(nodes.items(), key=lambda one: (-len(one[1]), one[1]))
            found.append(Difference(group, {text: tuple(names) for text, names in most_first}))
    return found


def _text(spec: GroupSpec) -> str:
    options, expressions = spec.options, []
    for topic in sorted(spec.listener_options):
        of_listener = spec.listener_options[topic]
        expressions.append(f"{topic} ({of_listener['sql'] or of_listener['tags']})")
    strategy = options["strategy"]
    words = [
        ", ".join(expressions),
        "in order" if options["orderly"] else "",
        "broadcasting" if options["broadcasting"] else "",
        "" if strategy == "AVG" else f"strategy {strategy if isinstance(strategy, str) else _name(strategy)}",
    ]
    return ", ".join(filter(None, words))


def _name(strategy: object) -> str:
    return function_name(strategy) if callable(strategy) and hasattr(strategy, "__qualname__") else repr(strategy)
