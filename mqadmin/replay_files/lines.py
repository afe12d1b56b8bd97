"""What one line of a file says: a dead letter as an export writes it, of which these fields are read. Pure.

group           whose dead letter it is
body            what is sent, as `body_encoding` says: text, base64; absent: the dead letter's own, which the index has
properties      of the message; tag and keys, where they stand beside them, must say the same
origin_topic    the topic that it was first sent to, else RETRY_TOPIC of the properties
cluster, message_id, offset_message_id     which dead letter it is; a line without them is a message of its own

All other fields are for people. Nothing of a line is trusted: what it says of the system is compared with the index.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.utils.translation import gettext_noop

from mqadmin.clusters.models import NAME_CHARS_MAX
from mqadmin.deadletters.exporting import BodyEncoding
from mqadmin.deadletters.models import KEYS_CHARS_MAX
from mqadmin.mending.editable_properties import RESERVED_BYTES
from mqadmin.replay_files.cells import WrongRow, cells_of
from mqadmin.replay_files.limits import SPREADSHEET_CELL_CHARS
from remoting.wire.errors import MessageError
from remoting.wire.limits import BODY_BYTES_MAX, PROPERTIES_BYTES_MAX
from remoting.wire.names import NOT_ALLOWED_SEND_TOPICS, check_group, check_topic
from remoting.wire.properties import NAME_END, VALUE_END, Property, encode_properties

COLUMNS_MAX = 100
# Of what is wrong with a line: it may quote the line.
REASON_CHARS_MAX = 200
_FORBIDDEN = frozenset({NAME_END, VALUE_END, "\0"})


class WrongLine(ValueError):
    """A line that cannot be replayed; the text says why. `group` is whose it is, as far as it says that."""

    def __init__(self, words: str, group: str = "", message_id: str = "") -> None:
        super().__init__(words)
        self.group = group
        self.message_id = message_id


class Said(msgspec.Struct):
    """The fields that are read of a line."""

    group: str
    body: str
    body_encoding: str = BodyEncoding.TEXT.value
    properties: dict[str, str] = {}
    origin_topic: str = ""
    cluster: str = ""
    message_id: str = ""
    offset_message_id: str = ""
    tag: str = ""
    keys: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A message of a file; `body` None: the dead letter's own."""

    group: str
    body: bytes | None
    properties: dict[str, str]
    origin_topic: str
    message_id: str
    offset_message_id: str


_FIELDS = tuple(Said.__struct_fields__)
_REQUIRED = ("group", "body")
_JSON = msgspec.json.Decoder(Said)
_GROUP_ALONE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PROPERTIES = msgspec.json.Decoder(dict[str, str])


def read_json(content: bytes, cluster: str) -> Line:
    """Reads a line of JSON Lines. Raises WrongLine."""
    try:
        said = _JSON.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        words = gettext_noop("it is not the JSON of a dead letter: %(reason)s") % {"reason": _reason(error)}
        raise WrongLine(words, _group_in(content)) from error
    return _line(said, cluster)


def columns_of(names: Sequence[str]) -> Mapping[str, int] | None:
    """Returns where the fields stand that are read, by the names in the first row; None where it names too few."""
    places = {name.strip().lower(): place for place, name in reversed(list(enumerate(names)))}
    return {name: places[name] for name in _FIELDS if name in places} if set(_REQUIRED) <= places.keys() else None


def read_row(content: bytes, separator: str, columns: Mapping[str, int], cluster: str) -> Line:
    """Reads a row of CSV. Raises WrongLine."""
    try:
        cells = cells_of(content.decode(), separator, COLUMNS_MAX)
    except UnicodeDecodeError as error:
        raise WrongLine(gettext_noop("it is not UTF-8: %(reason)s") % {"reason": _reason(error)}) from error
    except WrongRow as error:
        raise WrongLine(gettext_noop("it is no row of CSV: a quotation mark is not where it may be")) from error
    found: dict[str, Any] = {name: cells[place] for name, place in columns.items() if place < len(cells)}
    group = found.get("group", "")
    if not set(_REQUIRED) <= found.keys():
        raise WrongLine(gettext_noop("it has fewer cells than the first line has names"), group)
    if len(found["body"]) == SPREADSHEET_CELL_CHARS:
        raise WrongLine(gettext_noop("a spreadsheet has cut its body after 32767 characters"), group)
    if not found.get("body_encoding"):
        found.pop("body_encoding", None)
    try:
        found["properties"] = _PROPERTIES.decode(found["properties"]) if found.get("properties") else {}
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        words = gettext_noop("its properties are no JSON object of texts: %(reason)s") % {"reason": _reason(error)}
        raise WrongLine(words, group) from error
    return _line(Said(**found), cluster)


def _line(said: Said, cluster: str) -> Line:
    try:
        check_group(said.group)
    except MessageError as error:
        raise WrongLine(gettext_noop("its group cannot be one: %(reason)s") % {"reason": _reason(error)}) from error
    try:
        if said.cluster and said.cluster != cluster:
            words = gettext_noop("it is a dead letter of cluster %(other)s, and this is %(cluster)s")
            raise WrongLine(words % {"other": said.cluster[:REASON_CHARS_MAX], "cluster": cluster})
        _check_properties(said.properties)
        _check_beside(said)
        return Line(
            group=said.group,
            body=_body(said),
            properties=said.properties,
            origin_topic=_origin_topic(said),
            message_id=_name(said.message_id),
            offset_message_id=_name(said.offset_message_id),
        )
    except WrongLine as error:
        error.group = said.group
        if len(said.message_id) <= NAME_CHARS_MAX and "\0" not in said.message_id:
            error.message_id = said.message_id
        raise


def _body(said: Said) -> bytes | None:
    match said.body_encoding:
        case BodyEncoding.TEXT:
            body = said.body.encode()
        case BodyEncoding.BASE64:
            try:
                body = base64.b64decode(said.body, validate=True)
            except (binascii.Error, ValueError) as error:
                raise WrongLine(gettext_noop("its body is not Base64: %(reason)s") % {"reason": error}) from error
        case BodyEncoding.ABSENT if not said.body:
            return None
        case BodyEncoding.MASKED:
            raise WrongLine(gettext_noop("its body was hidden from whoever exported it"))
        case _:
            words = gettext_noop("its body_encoding is %(encoding)s; it must be text, base64, or absent without a body")
            raise WrongLine(words % {"encoding": said.body_encoding[:REASON_CHARS_MAX]})
    if len(body) > BODY_BYTES_MAX:
        words = gettext_noop("its body has %(bytes)d bytes; a broker takes %(most)d")
        raise WrongLine(words % {"bytes": len(body), "most": BODY_BYTES_MAX})
    return body


def _check_properties(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if not name.strip() or _FORBIDDEN & (set(name) | set(value)):
            words = gettext_noop("its property %(name)s has a character that no property can hold, or no name")
            raise WrongLine(words % {"name": name[:REASON_CHARS_MAX].replace("\0", "") or "–"})
    size = len(encode_properties(properties).encode(errors="replace"))
    if size > PROPERTIES_BYTES_MAX - RESERVED_BYTES:
        words = gettext_noop("its properties have %(bytes)d bytes; %(most)d is the most")
        raise WrongLine(words % {"bytes": size, "most": PROPERTIES_BYTES_MAX - RESERVED_BYTES})


def _check_beside(said: Said) -> None:
    """Raises WrongLine where somebody changed a tag or a key in one place alone: which is meant is not known."""
    tag, keys = said.properties.get(Property.TAGS, ""), said.properties.get(Property.KEYS, "").split()
    beside = said.keys.split()
    is_other = said.tag not in ("", tag[:NAME_CHARS_MAX])
    is_cut = len(said.keys) >= KEYS_CHARS_MAX - 2
    if is_other or (beside and beside != keys and not is_cut):
        raise WrongLine(gettext_noop("its tag or keys are not those of its properties, which are sent"))


def _origin_topic(said: Said) -> str:
    topic = (
        said.origin_topic
        or said.properties.get(Property.RETRY_TOPIC, "")
        or said.properties.get(Property.DLQ_ORIGIN_TOPIC, "")
    )
    try:
        if topic:
            check_topic(topic)
    except MessageError as error:
        words = gettext_noop("its topic cannot be one: %(reason)s") % {"reason": _reason(error)}
        raise WrongLine(words) from error
    if topic in NOT_ALLOWED_SEND_TOPICS:
        raise WrongLine(gettext_noop("nobody may send to topic %(topic)s") % {"topic": topic})
    return topic


def _name(text: str) -> str:
    if len(text) > NAME_CHARS_MAX or "\0" in text:
        raise WrongLine(gettext_noop("its message id is longer than one can be"))
    return text


def _group_in(content: bytes) -> str:
    """Returns the group of a line whose other fields are wrong, where it is JSON at least."""
    try:
        group = msgspec.json.decode(_GROUP_ALONE.decode(content).get("group", msgspec.Raw(b'""')), type=str)
        check_group(group)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MessageError):
        return ""
    return group


def _reason(error: Exception) -> str:
    return str(error)[:REASON_CHARS_MAX].replace("\0", "")
