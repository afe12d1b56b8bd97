"""Changes settings of one broker while it runs, by RocketMQ's names.

GET_BROKER_CONFIG (26) before and after, UPDATE_BROKER_CONFIG (25) between. Apache's brokers ignore names that they do
not have and say nothing of it: so an unknown name is refused here, and what counts is what the broker has afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.brokers import ask_cluster
from mqadmin.actions.declaration import Action, ActionUnavailable, Change, ItemOutcome, ItemState, Preview, Undo
from mqadmin.actions.secret_words import LEFT_OUT, is_secret
from mqadmin.brokers.defaults import Defaults, defaults_of
from mqadmin.brokers.rules import BrokerField, master_named
from mqadmin.clusters.models import Cluster
from mqadmin.observing.gateway import ChangeFailure, Gateway, Master, ToldSettings

SETTINGS_MAX = 50
SETTINGS_CHARS_MAX = 10_000


class SettingsField(forms.CharField):
    """A form field for settings, "name=value" on a line each; its value has each name once."""

    def __init__(self, **how: Any) -> None:
        super().__init__(
            label=gettext_lazy("Settings"),
            help_text=gettext_lazy("One on a line, as name=value. What is not named stays as it is."),
            max_length=SETTINGS_CHARS_MAX,
            widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
            **how,
        )

    def clean(self, value: Any) -> str:
        """Returns the lines without blanks around names and values. Raises ValidationError that names the line."""
        lines = [line.strip() for line in (super().clean(value) or "").splitlines() if line.strip()]
        _refuse_secrets(lines)
        settings: dict[str, str] = {}
        for line in lines:
            name, equals, text = (part.strip() for part in line.partition("="))
            if not equals or not name:
                raise ValidationError(_("%(line)s is no setting: write name=value.") % {"line": line[:100]})
            if name in settings:
                raise ValidationError(_("%(name)s is given twice.") % {"name": name[:100]})
            settings[name] = text
        if len(settings) > SETTINGS_MAX:
            raise ValidationError(_("At most %(most)d settings at once.") % {"most": SETTINGS_MAX})
        return _as_lines(settings)


def _refuse_secrets(lines: list[str]) -> None:
    """Raises ValidationError, before any line is quoted: the audit keeps the words."""
    for line in lines:
        name, equals, _value = line.partition("=")
        if is_secret(name):
            words = _("%(name)s may hold a password, which the audit would keep: set it in the broker's own file.")
            raise ValidationError(words % {"name": name.strip()[:100] if equals else LEFT_OUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBrokerConfig:
    """The settings of `broker` as they shall be, "name=value" on a line each."""

    broker: Annotated[str, BrokerField()]
    settings: Annotated[str, SettingsField()]


def preview(cluster: Cluster, arguments: ChangeBrokerConfig) -> Preview[Master]:
    """Reads the broker's settings. Raises ActionRefused, ActionUnavailable, and ValidationError for unknown names."""
    wanted = _read_lines(arguments.settings)

    async def ask(gateway: Gateway) -> tuple[Master, ToldSettings]:
        master = await master_named(gateway, arguments.broker)
        return master, await gateway.broker_settings.config(master.address)

    master, told = ask_cluster(cluster, ask)
    present = told.values
    if unknown := sorted(set(wanted) - set(present)):
        words = _("%(broker)s has no setting %(names)s.")
        raise ValidationError({"settings": words % {"broker": master.name, "names": ", ".join(unknown)[:200]}})
    defaults = defaults_of(cluster.kind, told.version)
    changes = tuple(_change(name, present[name], value, defaults) for name, value in wanted.items())
    return Preview(changes, master, tuple(_warnings(wanted)))


def carry_out(cluster: Cluster, _arguments: ChangeBrokerConfig, preview: Preview[Master]) -> Iterator[ItemOutcome]:
    """Sends what differs in one request, and reads what the broker has then."""
    yield from (change.unchanged() for change in preview.changes if not change.is_change)
    changes = [change for change in preview.changes if change.is_change]
    if not changes:
        return
    settings = {change.item: change.after["value"] for change in changes}
    address = preview.plan.address

    async def change_and_read(gateway: Gateway) -> ChangeFailure | ToldSettings:
        failure = await gateway.broker_settings.change_config(address, settings)
        return failure or await gateway.broker_settings.config(address)

    try:
        found = ask_cluster(cluster, change_and_read)
    except ActionUnavailable as error:
        yield from (change.unknown(str(error)) for change in changes)
        return
    for change in changes:
        if isinstance(found, ChangeFailure):
            yield change.unknown(found.reason) if found.is_unknown else change.failed(found.reason)
        else:
            yield _outcome(change, found.values.get(change.item, ""))


def undo(arguments: ChangeBrokerConfig, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the values before, of the settings that were changed."""
    before = {one.item: one.before["value"] for one in outcomes if one.state == ItemState.DONE and one.before}
    if not before:
        return None
    return Undo(DECLARATION.name, {"broker": arguments.broker, "settings": _as_lines(before)})


def _outcome(change: Change, value: str) -> ItemOutcome:
    """Returns the outcome by what the broker has now; it may write a value otherwise than it was sent."""
    if change.before is not None and value == change.before["value"]:
        return change.failed(_("The broker took the request and kept the value: it cannot change while it runs."))
    return ItemOutcome(change.item, ItemState.DONE, change.before, {**change.after, "value": value})


def _change(name: str, present: str, value: str, defaults: Defaults | None) -> Change:
    """Returns the change of a setting, with its default beside both values where that is known."""
    known = {"default": defaults.values[name]} if defaults is not None and name in defaults.values else {}
    return Change(name, {"value": present, **known}, {"value": value, **known})


def _read_lines(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def _as_lines(settings: dict[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in settings.items())


def _warnings(wanted: dict[str, str]) -> Iterator[str]:
    if "brokerPermission" in wanted and wanted["brokerPermission"] not in ("6", "7"):
        yield _("With this permission clients are refused until it is given back.")


DECLARATION: Action[ChangeBrokerConfig, Master] = Action(
    name="change_broker_config",
    title=gettext_lazy("Change the configuration"),
    permission="mq_clusters.change_broker",
    arguments=ChangeBrokerConfig,
    subject="broker",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
)
