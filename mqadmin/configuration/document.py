"""The YAML file: read with its line numbers, checked key by key, written. Pure.

    topics:
      orders:
        owner: shop
        description: Each step of an order.
        runbook: https://wiki.example.org/orders
        read_queues: 8
        write_queues: 8
        perm: 6
    groups:
      billing:
        owner: billing
        retry_times_max: 16

A key is an argument of the actions `describe_topic` and `create_topic`, `describe_group` and `create_group`; they
check the values. What is not said stays as it is: a topic or group that the file leaves out, a setting of one that it
has. Only mappings, plain keys and scalars are read: anchors, tags and lists are errors, so no file grows while it is
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

FILE_BYTES_MAX = 4 * 1024 * 1024
# Each is asked of every broker, one after the other.
ENTRIES_MAX = 10_000
# The time that a scanner takes for a token grows with its depth.
DEPTH_MAX = 8

TEXTS = ("owner", "description", "runbook")
TOPIC_SETTINGS = ("read_queues", "write_queues", "perm")
GROUP_SETTINGS = (
    "consumption",
    "broadcasting",
    "orderly",
    "retry_times_max",
    "retry_queues",
    "consume_timeout_minutes",
    "notifies_members",
)
SETTINGS: Mapping[str, tuple[str, ...]] = {"topic": TOPIC_SETTINGS, "group": GROUP_SETTINGS}
_SECTIONS = {"topics": "topic", "groups": "group"}
_YES_NO = ("consumption", "broadcasting", "orderly", "notifies_members")
_SCALARS: Mapping[str, type] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:bool": bool,
}

# libyaml's is tens of times as fast; wheels have it, other builds of PyYAML may not.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENING = (
    yaml.BlockMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.FlowSequenceStartToken,
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)


class DocumentError(Exception):
    """The file is not as it must be; the text names line and key."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A topic or group of the file. `kind` is "topic" or "group", `lines` says where each key stands."""

    kind: str
    name: str
    line: int
    values: Mapping[str, str | int | bool]
    lines: Mapping[str, int]

    def part(self, keys: tuple[str, ...]) -> dict[str, str | int | bool]:
        """Returns what the file says of `keys`."""
        return {key: value for key, value in self.values.items() if key in keys}


def read(text: bytes) -> list[Entry]:
    """Raises DocumentError."""
    if len(text) > FILE_BYTES_MAX:
        raise DocumentError(_("the file is larger than %(most)d bytes: split it") % {"most": FILE_BYTES_MAX})
    try:
        decoded = text.decode()
        _refuse_tokens(decoded)
        root = yaml.compose(decoded, _LOADER)
    except UnicodeDecodeError as error:
        raise DocumentError(_("the file is not UTF-8: byte %(byte)d") % {"byte": error.start}) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        # The end of a file without a line break counts as the line after it.
        raise _wrong(min(line, len(decoded.splitlines()) or 1), str(error.problem)) from error
    except yaml.YAMLError as error:
        raise DocumentError(_("the file is not YAML: %(reason)s") % {"reason": error}) from error
    if root is None:
        return []
    entries = [
        _entry(_SECTIONS[section], name, line, node)
        for section, section_line, names in _items(root, _("the file"))
        if _is_section(section, section_line)
        for name, line, node in _items(names, section)
    ]
    if len(entries) > ENTRIES_MAX:
        words = _("the file has %(n)d topics and groups, and may have %(most)d: split it")
        raise DocumentError(words % {"n": len(entries), "most": ENTRIES_MAX})
    return entries


def write(entries: list[Entry]) -> str:
    """Returns the file's text; what `read` gives back is the same."""
    document: dict[str, dict[str, dict[str, Any]]] = {}
    for section, kind in _SECTIONS.items():
        document[section] = {entry.name: dict(entry.values) for entry in entries if entry.kind == kind}
    return yaml.safe_dump(document, allow_unicode=False, sort_keys=False, width=100)


def _refuse_tokens(text: str) -> None:
    """Raises DocumentError for what would make the file grow, or take long, while it is read."""
    depth = 0
    for token in yaml.scan(text, _LOADER):
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken | yaml.TagToken):
            raise _wrong(token.start_mark.line + 1, _("anchors, aliases and tags are not read"))
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if depth > DEPTH_MAX:
            words = _("nested too deeply: topics and groups are three levels deep")
            raise _wrong(token.start_mark.line + 1, words)


def _is_section(section: str, line: int) -> bool:
    if section not in _SECTIONS:
        words = _("%(key)r is unknown here; there are: %(known)s")
        raise _wrong(line, words % {"key": section, "known": ", ".join(_SECTIONS)})
    return True


def _items(node: yaml.Node, what: str) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yields key, line and value of a mapping; nothing of an empty value. Raises DocumentError."""
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        return
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        raise _wrong(line, _("%(what)s must hold keys with values") % {"what": what})
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise _wrong(line, _("a key of %(what)s must be a plain word") % {"what": what})
        if key.value in seen:
            words = _("%(key)r stands on line %(line)d already")
            raise _wrong(line, words % {"key": key.value, "line": seen[key.value]})
        seen[key.value] = line
        yield key.value, line, value


def _entry(kind: str, name: str, line: int, node: yaml.Node) -> Entry:
    values: dict[str, str | int | bool] = {}
    lines: dict[str, int] = {}
    known = (*TEXTS, *SETTINGS[kind])
    for key, key_line, value in _items(node, f"{kind} {name}"):
        if key not in known:
            words = _("%(key)r is unknown for a %(kind)s; there are: %(known)s")
            raise _wrong(key_line, words % {"key": key, "kind": kind, "known": ", ".join(known)})
        values[key] = _value(key, key_line, value)
        lines[key] = key_line
    given = [key for key in TOPIC_SETTINGS if key in values]
    if kind == "topic" and given and len(given) < len(TOPIC_SETTINGS):
        missing = ", ".join(key for key in TOPIC_SETTINGS if key not in values)
        words = _("topic %(name)s says %(key)r, so it must say %(missing)s, too")
        raise _wrong(lines[given[0]], words % {"name": name, "key": given[0], "missing": missing})
    return Entry(kind, name, line, values, lines)


_TYPES: Mapping[type, Promise] = {
    str: gettext_lazy("a text"),
    int: gettext_lazy("a whole number"),
    bool: gettext_lazy("true or false"),
}


def _wrong_type(key: str, line: int, wanted: type) -> DocumentError:
    return _wrong(line, _("%(key)r must be %(type)s") % {"key": key, "type": _TYPES[wanted]})


def _wrong(line: int, words: str) -> DocumentError:
    return DocumentError(_("line %(line)d: %(words)s") % {"line": line, "words": words})


def _value(key: str, line: int, node: yaml.Node) -> str | int | bool:
    wanted = str if key in TEXTS else bool if key in _YES_NO else int
    if not isinstance(node, yaml.ScalarNode) or _SCALARS.get(node.tag) is not wanted:
        raise _wrong_type(key, line, wanted)
    try:
        value: str | int | bool = yaml.SafeLoader("").construct_object(node)
    except (ValueError, yaml.YAMLError) as error:
        raise _wrong_type(key, line, wanted) from error
    return value
