"""Forms that start at what is there now: the settings of a topic or group as its brokers have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.forms import Form
from django.utils.translation import gettext

from mqadmin.actions.present import OnBrokers
from mqadmin.console.action_values import ItemLine, item_line


@dataclass(frozen=True, slots=True)
class StartLine:
    """A broker whose settings a form can start with, at this address."""

    line: ItemLine
    url: str


def start_form(form: Form, found: OnBrokers, chosen: Sequence[str]) -> None:
    """Sets the form's fields to what the chosen brokers have, all of them where none is chosen.

    Of a setting that they have differently a field that may be empty stays so ("as it is"), any other gets the value of
    the first broker.
    """
    among = found.of(chosen)
    having = list(among.having.values())
    for name, field in form.fields.items():
        if having and name in having[0] and not (field.initial is None and name in among.differing):
            field.initial = having[0][name]
    if chosen:
        form.fields["brokers"].initial = list(chosen)


def start_lines(found: OnBrokers) -> list[StartLine]:
    """Returns what each broker has of the settings that differ; none where all have the same."""
    return [
        StartLine(
            item_line("", broker, {}, {name: values[name] for name in found.differing}),
            f"?{urlencode({'brokers': broker})}",
        )
        for broker, values in (found.having.items() if found.differing else ())
    ]


def start_sentence(found: OnBrokers, chosen: Sequence[str]) -> str:
    """Returns with whose settings the form starts; "" where that needs no words."""
    if not found.having:
        return gettext("No broker that answered has it: the form starts with RocketMQ's defaults.")
    if chosen:
        return gettext("The form starts with what %(brokers)s has.") % {"brokers": ", ".join(chosen)}
    if found.differing:
        return gettext(
            "Its brokers have different settings. The form starts with those of %(broker)s; what may be left empty"
            " stays as it is on each."
        ) % {"broker": next(iter(found.having))}
    return ""
