"""What rules publish, within the transaction that wrote it. Alerts subscribe to it."""

from __future__ import annotations

from dataclasses import dataclass

from django.dispatch import Signal

from mqadmin.deadletter_rules.models import DeadLetterRule
from mqadmin.deadletters.models import Failure

# A rule raised a failure, or further messages died of one that it had raised. → FailureRaised
failure_raised = Signal()


@dataclass(frozen=True, slots=True)
class FailureRaised:
    """`dead_count`: the dead letters that raised it now. `is_new`: it was not raised before."""

    rule: DeadLetterRule
    failure: Failure
    dead_count: int
    is_new: bool
