"""Whether a member that is not there yet would contradict those that are online, and of whom that is not known. Pure.

A member of which nothing is known contradicts nobody, so "no conflict" is said only where each member that is online
has told all that was asked about. A conflict that is found is one, whatever the others would say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mqadmin.subscriptions.consistency import Finding, MemberView, findings
from mqadmin.subscriptions.views_of_members import GroupView

# How what is not known of the group as a whole is named: who its members are.
MEMBERS = "members"


class Outcome(StrEnum):
    """What a pipeline goes by."""

    CONFLICT = "conflict"
    NO_CONFLICT = "no_conflict"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True, slots=True)
class NotKnown:
    """What is not known of a member of what was asked about. `client_id` "": of the group. `reason` "": not asked."""

    client_id: str
    what: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    findings: Sequence[Finding]
    not_known: Sequence[NotKnown]

    @property
    def outcome(self) -> Outcome:
        if self.findings:
            return Outcome.CONFLICT
        return Outcome.NOT_KNOWN if self.not_known else Outcome.NO_CONFLICT


def check(view: GroupView, wanted: MemberView, reasons: Mapping[str, str], *, are_members_known: bool) -> Checked:
    """Compares a member that wants this with those that are online now. `reasons`: why members did not answer last."""
    found = [one for one in findings([*view.members, wanted], view.table) if _concerns(one, wanted)]
    lacking = [] if are_members_known else [NotKnown("", (MEMBERS,))]
    for member in view.members:
        if what := _not_told(member, wanted):
            lacking.append(NotKnown(member.client_id, what, reasons.get(member.client_id, "")))
    return Checked(found, lacking)


def _concerns(found: Finding, wanted: MemberView) -> bool:
    """Tells whether the finding is about the new member: it is the odd one, or all others are."""
    return wanted.client_id in found.odd or len(found.odd) == found.member_count - 1


def _not_told(member: MemberView, wanted: MemberView) -> tuple[str, ...]:
    lacks = {
        "topics": member.topics is None,
        "message_model": bool(wanted.message_model) and not member.message_model,
        "is_orderly": wanted.is_orderly is not None and member.is_orderly is None,
        "consume_from_where": bool(wanted.consume_from_where) and not member.consume_from_where,
    }
    return tuple(name for name, is_lacking in lacks.items() if is_lacking)
