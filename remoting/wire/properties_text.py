"""Properties looked up in their text: what an expression asks for is found without decoding all the others.

The rules are those of `properties.py`, which is also asked where a text is unusual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

from remoting.wire.properties import NAME_END, VALUE_END, Property, decode_properties

D = TypeVar("D")


class PropertiesText(Mapping[str, str]):
    """The same as `decode_properties(text)` without RocketMQ's checksum, for names without control characters."""

    __slots__ = ("_found", "_text", "_whole")

    def __init__(self, text: str) -> None:
        self._text = VALUE_END + text
        self._found: dict[str, str | None] = {}
        self._whole: dict[str, str] | None = None

    @overload
    def get(self, name: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str | D, /) -> str | D: ...

    def get(self, name: str, default: object = None, /) -> object:
        found = self._found
        if name not in found:
            found[name] = self._find(name)
        value = found[name]
        return default if value is None else value

    def _find(self, name: str) -> str | None:
        """The last one counts. An empty value is none, so an earlier one may stand."""
        text = self._text
        mark = f"{VALUE_END}{name}{NAME_END}"
        start = text.rfind(mark)
        if start < 0 or not name or name == Property.CRC32:
            return None
        start += len(mark)
        end = text.find(VALUE_END, start)
        value = text[start:end] if end >= 0 else text[start:]
        return value or self._all().get(name)

    def _all(self) -> dict[str, str]:
        if self._whole is None:
            self._whole = decode_properties(self._text)
            self._whole.pop(Property.CRC32, None)
        return self._whole

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
