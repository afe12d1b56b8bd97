"""Which properties of a message people may edit: tag, keys and their own. The system's are locked. Pure.

What RocketMQ reads a meaning into decides where a message goes, when, and whose it is: another RETRY_TOPIC would send
it elsewhere, another UNIQ_KEY make another message of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext as _

from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.properties import NAME_END, VALUE_END, Property, encode_properties

EDITABLE_OF_ROCKETMQ = frozenset({Property.TAGS, Property.KEYS})
_OF_ROCKETMQ = frozenset(
    value for name, value in vars(Property).items() if not name.startswith("_") and isinstance(value, str)
)
# Kept free for those that a replay adds: its job, the entry, a key.
RESERVED_BYTES = 2048
# What decoding would take for the end of a name or value, or a database refuses.
_FORBIDDEN = frozenset({NAME_END, VALUE_END, "\0"})


class WrongProperties(ValueError):
    """The properties cannot be a message's; the text names the one, and says why."""


def is_locked(name: str) -> bool:
    """Returns whether only brokers and clients write the property."""
    return name.startswith("__") or (name in _OF_ROCKETMQ and name not in EDITABLE_OF_ROCKETMQ)


def editable(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns those that may be edited; tag and keys first."""
    names = sorted(properties, key=lambda name: (name not in EDITABLE_OF_ROCKETMQ, name))
    return {name: properties[name] for name in names if not is_locked(name)}


def mended(original: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Returns the locked ones of the original, and the wanted ones in place of the others."""
    return {name: value for name, value in original.items() if is_locked(name)} | dict(wanted)


def check(original: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises WrongProperties."""
    for name, value in wanted.items():
        if is_locked(name):
            raise WrongProperties(_("%(name)s is a property of the system: it stays as it is.") % {"name": name})
        if not name.strip() or not value:
            raise WrongProperties(_("A property has a name and a value: %(name)s lacks one.") % {"name": name or "–"})
        if _FORBIDDEN & (set(name) | set(value)):
            raise WrongProperties(_("%(name)s has a character that no property can hold.") % {"name": name})
    size = len(encode_properties(mended(original, wanted)).encode(errors="replace"))
    most = PROPERTIES_BYTES_MAX - RESERVED_BYTES
    if size > most:
        words = _("The properties together have %(bytes)d bytes; %(most)d is the most.")
        raise WrongProperties(words % {"bytes": size, "most": most})
