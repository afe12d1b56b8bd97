"""Sends a message through a channel, whatever its kind: the table of kinds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network

from django.conf import settings

from mqadmin.alerts import posting, sealing
from mqadmin.alerts.channels import dingtalk, feishu, mail, slack, webhook, wecom
from mqadmin.alerts.channels.kinds import ChannelKind
from mqadmin.alerts.messages import Message
from mqadmin.alerts.models import AlertChannel
from mqadmin.alerts.posting import Answer, Post
from mqadmin.delivery import NotDelivered

# A receiver that answers so will not take the message at the next try, either.
_FOR_GOOD = frozenset({400, 401, 403, 404, 405, 410, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Posted:
    """How a kind writes a request, and what in its answer says that the message was not taken."""

    post: Callable[[Message, Mapping[str, str], float], Post]
    complaint: Callable[[Answer], str]


POSTED: Mapping[ChannelKind, Posted] = {
    ChannelKind.WEBHOOK: Posted(webhook.post, webhook.complaint),
    ChannelKind.SLACK: Posted(slack.post, slack.complaint),
    ChannelKind.DINGTALK: Posted(dingtalk.post, dingtalk.complaint),
    ChannelKind.FEISHU: Posted(feishu.post, feishu.complaint),
    ChannelKind.WECOM: Posted(wecom.post, wecom.complaint),
}


def send(channel: AlertChannel, message: Message) -> None:
    """Raises NotDelivered."""
    if channel.kind == ChannelKind.MAIL:
        mail.send(message, channel.recipients.split())
        return
    try:
        address = sealing.opened(channel.sealed)
    except sealing.CannotOpen as error:
        raise NotDelivered(str(error), is_for_good=True) from error
    kind = POSTED[ChannelKind(channel.kind)]
    answer = posting.post(kind.post(message, address, time.time()), allowed_networks())
    if complaint := kind.complaint(answer):
        raise NotDelivered(complaint, is_for_good=answer.status in _FOR_GOOD)


def allowed_networks() -> tuple[posting.Network, ...]:
    """Returns the networks that this installation allows beyond the rule."""
    return tuple(ip_network(one) for one in settings.MQADMIN_ALERT_NETWORKS)
