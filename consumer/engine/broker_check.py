"""Asks brokers before a start whether they can evaluate the expressions (Java `checkClientInBroker`).

Only SQL92 needs it: it is off on Apache's brokers unless `enablePropertyFilter` is set, and only a broker can read it.
A broker that cannot be asked now is no reason not to start: it refuses the pulls if need be.
"""

from __future__ import annotations

import logging

from consumer.engine.brokers import Brokers
from consumer.engine.subscriptions import Subscriptions
from remoting.client.errors import BrokerRefused, ClientError
from remoting.wire.codes import RequestCode
from remoting.wire.errors import WireError
from remoting.wire.expressions import TAG

logger = logging.getLogger(__name__)


class SubscriptionRefused(ClientError):
    """A broker cannot evaluate an expression; the text names group, topic, expression, and the broker's words."""


async def check_subscriptions(subscriptions: Subscriptions, brokers: Brokers) -> None:
    """Raises SubscriptionRefused."""
    for topic in subscriptions.topics:
        if subscriptions.kind(topic) == TAG:
            continue
        subscription = subscriptions.of_topic(topic)
        try:
            await brokers.check_subscription(subscription)
        except (ClientError, WireError) as error:
            if isinstance(error, BrokerRefused) and error.request_code == RequestCode.CHECK_CLIENT_CONFIG:
                raise SubscriptionRefused(
                    f"group {subscriptions.group!r} cannot consume topic {topic!r} by {subscription.sub_string!r}:"
                    f" {error}"
                    " (correct the expression, or set enablePropertyFilter=true on Apache's broker)"
                ) from error
            text = "group %s: no broker could be asked about the expression of topic %r: %s"
            logger.warning(text, subscriptions.group, topic, error)
