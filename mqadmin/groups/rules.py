"""Rules and values that the verbs on groups share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mqadmin.actions.declaration import ActionRefused
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.errors import MessageError
from remoting.wire.limits import GROUP_CHARS_MAX
from remoting.wire.names import check_group, is_system_group

# Name of a setting here → that of RocketMQ's `SubscriptionGroupConfig`.
SETTINGS: Mapping[str, str] = {
    "consumption": "consume_enable",
    "broadcasting": "consume_broadcast_enable",
    "orderly": "consume_message_orderly",
    "retry_times_max": "retry_max_times",
    "retry_queues": "retry_queue_nums",
    "consume_timeout_minutes": "consume_timeout_minute",
    "notifies_members": "notify_consumer_ids_changed_enable",
}


class GroupField(forms.CharField):
    """A form field for the name of a consumer group, under RocketMQ's rules."""

    def __init__(self, **how: Any) -> None:
        super().__init__(max_length=GROUP_CHARS_MAX, validators=[_check_name], **how)


def _check_name(name: str) -> None:
    try:
        check_group(name)
    except MessageError as error:
        text = str(error)
        raise ValidationError(f"{text[:1].upper()}{text[1:]}.") from error


def refuse_system_group(group: str) -> None:
    """Raises ActionRefused for a group that RocketMQ keeps for itself."""
    if is_system_group(group):
        words = _("%(group)s is a group that RocketMQ keeps for itself: it can be neither changed nor deleted.")
        raise ActionRefused(words % {"group": group})


def config_values(config: SubscriptionGroupConfig) -> dict[str, Any]:
    """Returns the settings of a group as previews compare them."""
    return {name: getattr(config, field) for name, field in SETTINGS.items()}
