"""Who sees message bodies: by role and topic pattern. Pure; pages and REST ask it before they show a body.

The setting MQADMIN_MASKED is a list of rules, `role:pattern`, separated by commas; a pattern is a topic's name with `*`
for any part of it:

    viewer:*, operator:payments*     viewers see no body, operators none of the payments' topics

A role that no rule names sees all. What is hidden from a role is hidden from the lower ones, too. The retry and
dead-letter topics of a group hold other topics' messages: their bodies are judged by the topic they were first sent to,
and by their own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mqadmin.people.roles import Role

_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Bodies of the topics that match `pattern` are hidden from `role` and the roles below it."""

    role: Role
    pattern: str


def read_rules(text: str) -> tuple[MaskRule, ...]:
    """Reads the setting. Raises ValueError naming the word that is no rule."""
    rules = []
    for word in (part.strip() for part in text.split(",")):
        if not word:
            continue
        role, separator, pattern = word.partition(":")
        if not separator or role.strip() not in set(Role) or not pattern.strip():
            raise ValueError(
                f"MQADMIN_MASKED has {word!r}; it must be role:pattern, as in viewer:payments*, and the role one of "
                f"{', '.join(Role)}"
            )
        rules.append(MaskRule(Role(role.strip()), pattern.strip()))
    return tuple(rules)


def concerns(rule: MaskRule, role: Role) -> bool:
    """Returns whether the rule hides bodies from the role."""
    return _RANKS[role] <= _RANKS[rule.role]


def is_masked(rules: Sequence[MaskRule], role: Role | None, topics: Collection[str]) -> bool:
    """Returns whether a body is hidden. `topics`: where the message is, and where it was first sent to."""
    if role is None:
        return True
    return any(concerns(rule, role) and any(fnmatchcase(topic, rule.pattern) for topic in topics) for rule in rules)
