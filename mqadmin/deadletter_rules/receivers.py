"""Has rules look again at dead letters whose reason came after they had passed over them."""

from __future__ import annotations

from django.db.models import F
from django.dispatch import receiver
from django.utils import timezone

from mqadmin.deadletter_rules.applying import rule_of
from mqadmin.deadletter_rules.deciding import Rule, is_about
from mqadmin.deadletter_rules.gaps import gaps_of, with_numbers
from mqadmin.deadletter_rules.models import DeadLetterRule
from mqadmin.deadletters.signals import ReasonsCame, reasons_came


@receiver(reasons_came)
def look_again(event: ReasonsCame, **_: object) -> int:
    """Returns how many dead letters rules look at again, each counted for each of them.

    A rule on a failure that is the same one under another identity goes on with that.
    """
    rules = DeadLetterRule.objects.filter(cluster=event.cluster, group_name=event.group_name)
    for before, identity in event.renamed.items():
        rules.filter(identity=before).update(identity=identity)
    count = 0
    for row in rules.select_for_update().filter(is_running=True).order_by("pk"):
        newly = _newly_matched(rule_of(row), event)
        passed = [one for one in newly if row.began_behind_id < one <= row.reached_id]
        if passed:
            gaps = with_numbers(gaps_of(row.gaps), passed, timezone.now())
            # A look that is under way has read the gaps as they were: it writes nothing, and the next one sees these.
            DeadLetterRule.objects.filter(pk=row.pk).update(gaps=gaps, look_count=F("look_count") + 1)
        count += len(passed)
    return count


def _newly_matched(rule: Rule, event: ReasonsCame) -> list[int]:
    """Returns the dead letters that the rule is about by their reasons alone: on others it has acted before."""
    return [
        one.dead_letter_id
        for one in event.reasons
        if is_about(rule, one.identity, one.failure_class, one.failure_text)
        and not is_about(rule, event.renamed.get(one.identity_before, one.identity_before), "", "")
    ]
