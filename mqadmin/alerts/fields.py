"""Form fields that several actions on alerts ask for."""

from __future__ import annotations

import re
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from mqadmin.alerts.models import PATTERN_CHARS_MAX
from mqadmin.alerts.silencing import MINUTES_OF_DAY

WEEKDAYS = (
    ("mon", gettext_lazy("Monday")),
    ("tue", gettext_lazy("Tuesday")),
    ("wed", gettext_lazy("Wednesday")),
    ("thu", gettext_lazy("Thursday")),
    ("fri", gettext_lazy("Friday")),
    ("sat", gettext_lazy("Saturday")),
    ("sun", gettext_lazy("Sunday")),
)
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


class NameField(forms.RegexField):
    """The name of a rule, a channel or a silence; it stands in addresses."""

    def __init__(self, **how: Any) -> None:
        how.setdefault("help_text", gettext_lazy("Letters, digits, blanks and . : - _"))
        super().__init__(r"^[\w .:-]+\Z", **how)


class PatternField(forms.CharField):
    def __init__(self, **how: Any) -> None:
        how.setdefault("help_text", pgettext_lazy("pattern", "* stands for any part: billing-*"))
        super().__init__(max_length=PATTERN_CHARS_MAX, **how)


class ClockField(forms.CharField):
    """A time of day, 00:00 to 23:59."""

    def validate(self, value: str) -> None:
        super().validate(value)
        if value and not _CLOCK.fullmatch(value):
            raise ValidationError(_("Write a time of day like 22:30."))


class ZoneField(forms.CharField):
    """The name of a time zone that this machine knows."""

    def validate(self, value: str) -> None:
        super().validate(value)
        if value and value not in available_timezones():
            raise ValidationError(_("There is no time zone of this name: write one like Asia/Shanghai."))


def minutes_of(clock: str) -> int:
    """Returns the minute of the day of a time like 22:30."""
    hour, minute = clock.split(":")
    return int(hour) * 60 + int(minute)


def clock_of(minutes: int) -> str:
    hour, minute = divmod(minutes % MINUTES_OF_DAY, 60)
    return f"{hour:02}:{minute:02}"


def mail_addresses(text: str) -> list[str]:
    """Returns the addresses, each once. Raises ValidationError for the argument `recipients`."""
    addresses = list(dict.fromkeys(text.replace(",", " ").split()))
    for one in addresses:
        try:
            validate_email(one)
        except ValidationError as error:
            words = _("%(text)s is no mail address.")
            raise ValidationError({"recipients": words % {"text": one}}) from error
    return addresses
