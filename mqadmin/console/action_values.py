"""The values before and after a change, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext, gettext_lazy

from mqadmin.actions import registry
from mqadmin.actions.declaration import Values
from mqadmin.alerts.channels.kinds import ChannelKind
from mqadmin.alerts.conditions import About
from mqadmin.alerts.fields import WEEKDAYS
from mqadmin.alerts.sentences import verdict_word
from mqadmin.console.figures import count_text
from mqadmin.console.stored_words import in_viewers_language
from mqadmin.console.templatetags.numbers import permission
from mqadmin.deadletter_rules.deciding import Does
from mqadmin.people.words import ROLE_WORDS, YES_NO
from mqadmin.replays.states import JobState, Target

LABELS: dict[str, Promise] = {
    "wanted_instances": gettext_lazy("instances wanted"),
    "instances_run": gettext_lazy("instances run"),
    "lag_s": gettext_lazy("Longest wait in seconds"),
    "draining": gettext_lazy("draining"),
    "given_up": gettext_lazy("given up"),
    "state": gettext_lazy("state"),
    "read_queues": gettext_lazy("queues to read"),
    "write_queues": gettext_lazy("queues to write"),
    "perm": gettext_lazy("permission"),
    "messages": gettext_lazy("messages stored"),
    "groups": gettext_lazy("read by"),
    "route": gettext_lazy("routed to"),
    "consumption": gettext_lazy("members may consume"),
    "broadcasting": gettext_lazy("broadcasting allowed"),
    "orderly": gettext_lazy("consumes in order"),
    "retry_times_max": gettext_lazy("retries"),
    "retry_queues": gettext_lazy("queues for retries"),
    "consume_timeout_minutes": gettext_lazy("minutes to consume"),
    "notifies_members": gettext_lazy("members notified of others"),
    "broker_when_slow": gettext_lazy("broker for members that are slow"),
    "from_min": gettext_lazy("may begin at the oldest message"),
    "retry_policy": gettext_lazy("delays between retries"),
    "attributes": gettext_lazy("attributes"),
    "members": gettext_lazy("members online"),
    "lag": gettext_lazy("lag"),
    "retries": gettext_lazy("messages in the retry topic"),
    "dead_letters": gettext_lazy("dead letters"),
    "value": gettext_lazy("value"),
    "default": gettext_lazy("default"),
    "writing": gettext_lazy("producers may write"),
    "namesrv": gettext_lazy("name servers"),
    "note": gettext_lazy("note"),
    "found": gettext_lazy("found there"),
    "broker_count": gettext_lazy("brokers"),
    "topic_count": gettext_lazy("topics known here"),
    "group_count": gettext_lazy("groups known here"),
    "entries": gettext_lazy("entries"),
    "role": gettext_lazy("role"),
    "action": gettext_lazy("action"),
    "schedule": gettext_lazy("when (UTC)"),
    "identity": gettext_lazy("acts for"),
    "running": gettext_lazy("runs at its times"),
    "password": gettext_lazy("password"),
    "kwargs": gettext_lazy("sent with"),
    "active": gettext_lazy("can log in"),
    "read_only": gettext_lazy("read-only"),
    "address": gettext_lazy("from"),
    "user_agent": gettext_lazy("browser"),
    "archived": gettext_lazy("archived"),
    "archived_at": gettext_lazy("archived at"),
    "restored_at": gettext_lazy("restored at"),
    "others_listed": gettext_lazy("others of the same filter are not archived"),
    "failure": gettext_lazy("failure"),
    "group": gettext_lazy("group"),
    "message": gettext_lazy("message"),
    "owner": gettext_lazy("owner"),
    "body_bytes": gettext_lazy("bytes of the body"),
    "is_body_mended": gettext_lazy("another body"),
    "properties": gettext_lazy("properties"),
    "mended_by": gettext_lazy("mended by"),
    "version": gettext_lazy("version"),
    "rate": gettext_lazy("messages a second"),
    "stop_percent": gettext_lazy("stops when more percent fail again"),
    "skip_replayed": gettext_lazy("leaves out what another replay has sent"),
    "target": gettext_lazy("sent to"),
    "topics": gettext_lazy("topics"),
    "sample": gettext_lazy("among them"),
    "replay": gettext_lazy("replay"),
    "file": gettext_lazy("file"),
    "lines": gettext_lazy("lines"),
    "messages_selected": gettext_lazy("dead letters"),
    "about": gettext_lazy("watches"),
    "clusters": gettext_lazy("clusters"),
    "names": gettext_lazy("groups or brokers"),
    "rules": gettext_lazy("rules"),
    "verdicts": gettext_lazy("verdicts"),
    "threshold": gettext_lazy("from"),
    "window_minutes": gettext_lazy("within minutes"),
    "for_s": gettext_lazy("fires after seconds"),
    "resolve_s": gettext_lazy("resolves after seconds"),
    "escalate_minutes": gettext_lazy("minutes until others are told"),
    "channels": gettext_lazy("told by"),
    "escalation_channels": gettext_lazy("others told by"),
    "kind": gettext_lazy("kind"),
    "language": gettext_lazy("language"),
    "place": gettext_lazy("sent to"),
    "sent_to": gettext_lazy("sent to"),
    "recipients": gettext_lazy("mail addresses"),
    "sealed": gettext_lazy("address and secret"),
    "acknowledged": gettext_lazy("acknowledged"),
    "minutes": gettext_lazy("minutes"),
    "weekdays": gettext_lazy("every week on"),
    "from_time": gettext_lazy("from"),
    "to_time": gettext_lazy("to"),
    "zone": gettext_lazy("time zone"),
    "does": gettext_lazy("does"),
    "acts_for": gettext_lazy("acts for"),
}


@dataclass(frozen=True, slots=True)
class ValueLine:
    """One value of an item. `before` or `after` is "" on the side where the item is not there, or not known."""

    label: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        """Tells whether both sides are known and differ."""
        return bool(self.before and self.after) and self.before != self.after

    @property
    def text(self) -> str:
        """Returns the value of an unchanged line, and the one side of a line that has but one."""
        return self.after or self.before


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One item: its name, what becomes of it as a whole ("" where only values change), and its values."""

    name: str
    summary: str
    values: tuple[ValueLine, ...]


def value_text(name: str, value: Any) -> str:
    """Returns a value in words."""
    return _text(name, {name: value})


def item_line(subject: str, item: str, before: Values | None, after: Values | None) -> ItemLine:
    """Returns an item's values side by side; the subject itself stands for item ""."""
    names = list(dict.fromkeys([*(before or {}), *(after or {})]))
    values = tuple(ValueLine(str(LABELS.get(name, name)), _text(name, before), _text(name, after)) for name in names)
    return ItemLine(item or subject, _summary(before, after), values)


def _summary(before: Values | None, after: Values | None) -> str:
    if after is None:
        return gettext("not known now")
    if before is None:
        return gettext("not known before")
    if not before:
        return gettext("new") if after else gettext("not there")
    return "" if after else gettext("deleted")


def _text(name: str, values: Values | None) -> str:
    if not values or name not in values:
        return ""
    writer: Callable[[Any], str] = _WRITERS.get(name, _plain)
    return writer(values[name])


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, int):
        return count_text(value)
    if value is None:
        return gettext("none")
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else gettext("none")
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or gettext("none")
    return str(value) or gettext("none")


def _role(value: Any) -> str:
    return str({role.value: word for role, word in ROLE_WORDS.items()}.get(value, value)) or gettext("none")


def _yes_or_no(value: Any) -> str:
    return _plain(value) if isinstance(value, bool) else str(dict(YES_NO).get(value, value))


def _password(value: Any) -> str:
    return str({"present": gettext("the present one"), "new": gettext("a new one")}.get(value, value))


def _action(value: Any) -> str:
    action = registry.ACTIONS.get(value)
    return str(value if action is None else action.title)


def _found(value: Any) -> str:
    """Writes what was found behind name servers: stored words, joined by signs (cluster_settings/finding_out.py)."""
    return "".join(in_viewers_language(one) for one in re.split(r"(; | \+ )", str(value)))


def _target(value: Any) -> str:
    return str(dict(Target.choices).get(value, value))


def _replay_state(value: Any) -> str:
    return str(dict(JobState.choices).get(value, value))


def _does(value: Any) -> str:
    return str(dict(Does.choices).get(value, value))


def _about(value: Any) -> str:
    return str(dict(About.choices).get(value, value))


def _channel_kind(value: Any) -> str:
    return str(dict(ChannelKind.choices).get(value, value))


def _verdicts(value: Any) -> str:
    return ", ".join(verdict_word(str(one)) for one in value) or gettext("none")


def _weekdays(value: Any) -> str:
    words = dict(WEEKDAYS)
    return ", ".join(str(words.get(one, one)) for one in value)


def _language(value: Any) -> str:
    return str(dict(settings.LANGUAGES).get(value, value))


def _moment(value: Any) -> str:
    moment = parse_datetime(str(value))
    return str(value) if moment is None else date_format(localtime(moment), "Y-m-d H:i:s")


def _new(value: Any) -> str:
    return gettext("new, and not shown again") if value == "new" else str(value)


_WRITERS: dict[str, Callable[[Any], str]] = {
    "perm": permission,
    "role": _role,
    "active": _yes_or_no,
    "read_only": _yes_or_no,
    "running": _yes_or_no,
    "password": _password,
    "action": _action,
    "found": _found,
    "target": _target,
    "state": _replay_state,
    "skip_replayed": _yes_or_no,
    "does": _does,
    "about": _about,
    "kind": _channel_kind,
    "verdicts": _verdicts,
    "weekdays": _weekdays,
    "language": _language,
    "acknowledged": _yes_or_no,
    "sealed": _new,
    "archived_at": _moment,
    "restored_at": _moment,
}
