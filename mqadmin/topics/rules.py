"""Rules and values that the verbs on topics share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mqadmin.actions.declaration import ActionRefused
from mqadmin.observing.gateway import Master
from remoting.wire.bodies.topics import TopicConfig
from remoting.wire.errors import MessageError
from remoting.wire.limits import RETRY_TOPIC_CHARS_MAX
from remoting.wire.names import check_topic, is_topic_of_broker


class TopicField(forms.CharField):
    """A form field for the name of a topic, under RocketMQ's rules."""

    def __init__(self, **how: Any) -> None:
        super().__init__(max_length=RETRY_TOPIC_CHARS_MAX, validators=[_check_name], **how)


def _check_name(name: str) -> None:
    try:
        check_topic(name)
    except MessageError as error:
        text = str(error)
        raise ValidationError(f"{text[:1].upper()}{text[1:]}.") from error


def refuse_system_topic(topic: str, masters: Sequence[Master]) -> None:
    """Raises ActionRefused for a topic that RocketMQ keeps for itself."""
    own_names = {master.name for master in masters} | {master.cluster for master in masters}
    if is_topic_of_broker(topic, own_names):
        raise ActionRefused(
            _("%(topic)s is a topic that RocketMQ keeps for itself: it can be neither created nor deleted.")
            % {"topic": topic}
        )


def config_values(config: TopicConfig) -> dict[str, int]:
    """Returns the settings of a topic as previews compare them."""
    return {"read_queues": config.read_queue_nums, "write_queues": config.write_queue_nums, "perm": config.perm}
