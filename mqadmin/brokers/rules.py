"""What the verbs on brokers share."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import ActionRefused
from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.observing.gateway import Gateway, Master


class BrokerField(forms.CharField):
    """A form field for the name of a broker that takes changes."""

    def __init__(self, **how: Any) -> None:
        super().__init__(label=gettext_lazy("Broker"), max_length=NAME_CHARS_MAX, **how)


async def master_named(gateway: Gateway, name: str) -> Master:
    """Returns the broker of this name. Raises ActionRefused where the name servers know none that takes changes."""
    for master in await gateway.masters():
        if master.name == name:
            return master
    words = _("The name servers do not know %(name)s as a broker that takes changes (any more).")
    raise ActionRefused(words % {"name": name})
