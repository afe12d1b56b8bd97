"""The values before and after a change, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from mqadmin.actions.declaration import Values
from mqadmin.console.figures import count_text
from mqadmin.console.templatetags.numbers import permission

LABELS: dict[str, Promise] = {
    "wanted_instances": gettext_lazy("instances wanted"),
    "read_queues": gettext_lazy("queues to read"),
    "write_queues": gettext_lazy("queues to write"),
    "perm": gettext_lazy("allows"),
    "messages": gettext_lazy("messages stored"),
    "groups": gettext_lazy("read by"),
    "route": gettext_lazy("routed to"),
}


@dataclass(frozen=True, slots=True)
class ValueLine:
    """One value of an item; `before` "" where the item did not exist, `after` "" where it will not."""

    label: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One item: what it is called, what it was and what it is in words, and its values one by one."""

    name: str
    before: str
    after: str
    values: tuple[ValueLine, ...]


def item_line(subject: str, item: str, before: Values | None, after: Values | None) -> ItemLine:
    """Puts an item's values side by side; the subject itself stands for item ""."""
    names = list(dict.fromkeys([*(before or {}), *(after or {})]))
    values = tuple(ValueLine(str(LABELS.get(name, name)), _text(name, before), _text(name, after)) for name in names)
    return ItemLine(item or subject, _existence(before), _existence(after), values)


def _existence(values: Values | None) -> str:
    if values is None:
        return gettext("not known")
    return "" if values else gettext("not there")


def _text(name: str, values: Values | None) -> str:
    if not values or name not in values:
        return ""
    value: Any = values[name]
    writer: Callable[[Any], str] = _WRITERS.get(name, _plain)
    return writer(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, int):
        return count_text(value)
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or gettext("none")
    return str(value)


_WRITERS: dict[str, Callable[[Any], str]] = {"perm": permission}
