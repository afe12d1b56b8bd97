"""What a replayed message carries, and to which topic it goes. Pure.

Kept are the body, tags, keys, the sender's id and all properties that users gave. Left out is what brokers and clients
noted on its way to the dead letters: attempts, delays, transactions, why it failed. Added are the replay and the entry
that it belongs to, and one more key, by which it is found.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_noop

from mqadmin.replays.states import Target
from remoting.wire.names import retry_topic
from remoting.wire.properties import RESERVED_PROPERTIES, Property

# Of the properties that RocketMQ gives a meaning, those that are the sender's.
KEPT_PROPERTIES = frozenset(
    {
        Property.TAGS,
        Property.KEYS,
        Property.UNIQ_KEY,
        Property.INSTANCE_ID,
        Property.CORRELATION_ID,
        Property.REPLY_TO_CLIENT,
        Property.TTL,
    }
)


class NotToBeSent(Exception):
    """A rule forbids to send it; the text says which."""


def destination(target: Target, target_topic: str, *, group: str, origin_topic: str) -> str:
    """Returns the topic to which a dead letter of the group goes. Raises NotToBeSent where it is not known."""
    if target == Target.TOPIC:
        return target_topic
    if not origin_topic:
        raise NotToBeSent(gettext_noop("the topic that it was first sent to is not known: choose another topic"))
    return origin_topic if target == Target.ORIGIN else retry_topic(group)


def lookup_key(token: str, entry_id: int) -> str:
    """Returns the key that the message of this entry has, and no other."""
    return f"replay-{token}-{entry_id}"


def outgoing_properties(
    properties: Mapping[str, str],
    target: Target,
    *,
    origin_topic: str,
    token: str,
    entry_id: int,
    is_mended: bool = False,
) -> dict[str, str]:
    """Returns all properties of the message that is sent.

    A copy that people changed gets an id of its own: groups that remember ids must not take it for the sender's.
    """
    key = lookup_key(token, entry_id)
    sent = {name: value for name, value in properties.items() if _is_senders(name)}
    # Of an earlier replay.
    former = f"replay-{properties.get(Property.REPLAY_JOB)}-"
    keys = [one for one in sent.get(Property.KEYS, "").split() if not one.startswith(former)]
    sent[Property.KEYS] = " ".join([*keys, key])
    if is_mended or Property.UNIQ_KEY not in sent:
        sent[Property.UNIQ_KEY] = key
    if target == Target.GROUP:
        sent[Property.RETRY_TOPIC] = origin_topic
        if origin_id := properties.get(Property.ORIGIN_MESSAGE_ID):
            sent[Property.ORIGIN_MESSAGE_ID] = origin_id
    sent[Property.REPLAY_JOB] = token
    sent[Property.REPLAY_ENTRY] = str(entry_id)
    return sent


def _is_senders(name: str) -> bool:
    return name in KEPT_PROPERTIES or name not in RESERVED_PROPERTIES
