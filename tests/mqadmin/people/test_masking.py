from __future__ import annotations

import pytest

from mqadmin.people.masking import MaskRule, is_masked, read_rules
from mqadmin.people.roles import Role

RULES = read_rules("viewer:*, operator:payments*")


def test_rules_are_read() -> None:
    assert (MaskRule(Role.VIEWER, "*"), MaskRule(Role.OPERATOR, "payments*")) == RULES
    assert read_rules("") == ()


@pytest.mark.parametrize("text", ["payments", "root:x", "viewer:", ":x"])
def test_what_is_no_rule_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="MQADMIN_MASKED"):
        read_rules(text)


@pytest.mark.parametrize(
    ("role", "topics", "masked"),
    [
        (Role.VIEWER, ["orders"], True),
        (Role.OPERATOR, ["orders"], False),
        (Role.OPERATOR, ["payments-eu"], True),
        (Role.OPERATOR, ["%DLQ%billing", "payments-eu"], True),
        (Role.OPERATOR, ["Payments"], False),
        (Role.ADMIN, ["payments"], False),
        (None, ["orders"], True),
    ],
)
def test_bodies_are_hidden_by_role_and_topic(role: Role | None, topics: list[str], masked: bool) -> None:
    assert is_masked(RULES, role, topics) is masked


def test_without_rules_whoever_has_a_role_sees_all() -> None:
    assert not is_masked((), Role.VIEWER, ["orders"])
    assert is_masked((), None, ["orders"])
