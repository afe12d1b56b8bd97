from __future__ import annotations

import pytest

from remoting.wire.codes import ResponseCode
from remoting.wire.errors import MessageError
from remoting.wire.limits import TAG_EXPRESSION_CHARS_MAX
from remoting.wire.tags import parse_tags, tags_code


@pytest.mark.parametrize("text", [None, "", "*", " * "])
def test_everything_matches_when_nothing_is_named(text: str | None) -> None:
    expression = parse_tags(text)
    assert expression.matches_all
    assert expression.matches(None)
    assert expression.matches("any")
    assert not expression.codes


def test_named_tags_match_and_no_others() -> None:
    expression = parse_tags("TagA || TagB||TagA")
    assert expression.tags == ("TagA", "TagB")
    assert expression.matches("TagA")
    assert expression.matches("TagB")
    assert not expression.matches("TagC")
    assert not expression.matches(None)
    assert expression.codes == {tags_code("TagA"), tags_code("TagB")}


def test_the_hash_is_javas() -> None:
    assert tags_code("TagA") == 2598919
    assert tags_code("") == tags_code(None) == 0


def test_tags_with_one_hash_are_told_apart_by_their_text() -> None:
    expression = parse_tags("Aa")
    assert tags_code("BB") in expression.codes
    assert not expression.matches("BB")


@pytest.mark.parametrize("text", ["||", " || || ", "|| "])
def test_an_expression_that_names_no_tag_is_refused(text: str) -> None:
    with pytest.raises(MessageError, match="names no tag") as caught:
        parse_tags(text)
    assert caught.value.response_code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_an_expression_that_is_too_long_is_refused_with_what_to_do() -> None:
    assert parse_tags("a" * TAG_EXPRESSION_CHARS_MAX).tags
    with pytest.raises(MessageError, match=r"65537 characters, of 65536 allowed: subscribe to \*") as caught:
        parse_tags("a" * (TAG_EXPRESSION_CHARS_MAX + 1))
    assert caught.value.response_code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
