from __future__ import annotations

from typing import Any

import pytest

from remoting.wire.error_text import NO_TEXT, error_text


class Mute(BaseException):
    def __init__(self, text: Any) -> None:
        self._text = text

    def __str__(self) -> str:
        if isinstance(self._text, BaseException):
            raise self._text
        return self._text  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such customer"), "no such customer"),
        (ValueError(), ""),
        (ValueError("half of a pair: \ud83d"), "half of a pair: ?"),
        (Mute(5), NO_TEXT),
        (Mute(KeyError("customer")), NO_TEXT),
        (Mute(SystemExit(3)), NO_TEXT),
    ],
    ids=["a text", "none", "half of a pair", "no str", "raises", "exits"],
)
def test_asking_for_the_text_of_an_exception_never_fails(error: BaseException, text: str) -> None:
    assert error_text(error) == text
