"""Django's system checks of what is declared and set; nothing is consumed while one of these errors is there.

consumer.E001   a group or topic that is no name, or one that RocketMQ does not take
consumer.E002   two listeners of a group on one topic
consumer.E003   two values of an option of the whole group, such as one listener clustering and one broadcasting
consumer.E004   a value that an option cannot have
consumer.E005   two options that contradict each other, or one that does nothing without another
consumer.E006   a type that no body can have
consumer.E007   a function that cannot be called with a message, or cannot do what an option asks
consumer.E008   a middleware that cannot be imported, or cannot wrap one of the listeners
consumer.E009   a cluster that the settings do not name
consumer.E010   a database that the settings do not name
"""

from __future__ import annotations

from typing import Any

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from consumer.assembly import with_middleware
from consumer.conf import middleware_paths
from consumer.inbox import databases
from consumer.listener import Registry, registry
from consumer.middleware.chain import load


def check_listeners(listeners: Registry = registry, **_: Any) -> list[checks.CheckMessage]:
    return [checks.Error(fault.text, id=fault.id) for fault in listeners.faults]


def check_middleware(listeners: Registry = registry, **_: Any) -> list[checks.CheckMessage]:
    found: dict[str, checks.CheckMessage] = {}
    try:
        chain = load(middleware_paths())
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="consumer.E008")]
    for spec in () if listeners.faults else listeners.groups.values():
        for listener in spec.listeners.values():
            try:
                with_middleware(spec, listener, chain)
            except ImproperlyConfigured as error:
                found[str(error)] = checks.Error(str(error), id="consumer.E008")
    return list(found.values())


def check_databases(listeners: Registry = registry, **_: Any) -> list[checks.CheckMessage]:
    known = ", ".join(connections.settings)
    unknown = sorted(databases(listeners.groups.values()) - set(connections.settings)) if not listeners.faults else []
    return [
        checks.Error(f"once={name!r} names no database of the settings, which are: {known}", id="consumer.E010")
        for name in unknown
    ]
