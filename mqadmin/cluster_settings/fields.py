"""Form fields that the verbs on clusters share."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.clusters.models import NAMESRV_CHARS_MAX, NOTE_CHARS_MAX

# RocketMQ's own documentation runs two or three.
NAME_SERVERS_MAX = 10
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
PORT_MAX = 65_535


class AddressesField(forms.CharField):
    """A form field for name servers, "host:port", separated by ";", a comma or a blank; its value has ";" alone."""

    def __init__(self, **how: Any) -> None:
        super().__init__(
            label=gettext_lazy("Name servers"),
            help_text=gettext_lazy("host:port, several with a semicolon between them."),
            max_length=NAMESRV_CHARS_MAX,
            **how,
        )

    def clean(self, value: Any) -> str:
        """Returns "host:port;host:port". Raises ValidationError that names the part that is no address."""
        names = [name for name in re.split(r"[;,\s]+", super().clean(value) or "") if name]
        for name in names:
            _check_address(name)
        if self.required and not names:
            raise ValidationError(self.error_messages["required"], code="required")
        addresses = list(dict.fromkeys(name.lower() for name in names))
        if len(addresses) > NAME_SERVERS_MAX:
            raise ValidationError(_("At most %(most)d name servers.") % {"most": NAME_SERVERS_MAX})
        return ";".join(addresses)


class NoteField(forms.CharField):
    """A form field for what people want to know of a cluster."""

    def __init__(self, **how: Any) -> None:
        super().__init__(
            label=gettext_lazy("Note"),
            help_text=gettext_lazy("Who runs it, what it is for."),
            max_length=NOTE_CHARS_MAX,
            **how,
        )


def _check_address(name: str) -> None:
    host, _colon, port = name.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port[:6]) <= PORT_MAX
    if not (is_port and _HOST.fullmatch(host)):
        raise ValidationError(
            _("%(name)s is no address: write host:port, such as 10.0.0.5:9876.") % {"name": name[:100]}
        )
