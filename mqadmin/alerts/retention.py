"""Removes what is old: alerts that resolved, what was told, and its deliveries."""

from __future__ import annotations

from datetime import datetime, timedelta

from mqadmin.alerts.models import Alert, AlertNotice
from mqadmin.alerts.stepping import State

ALERTS_KEPT_FOR = timedelta(days=90)
NOTICES_KEPT_FOR = timedelta(days=30)
AT_ONCE = 1000


def remove_old(now: datetime) -> int:
    """Returns how many rows went; what is left goes the next time."""
    notices = AlertNotice.objects.filter(made_at__lt=now - NOTICES_KEPT_FOR).order_by("made_at")
    alerts = Alert.objects.filter(state=State.RESOLVED, fired_at__lt=now - ALERTS_KEPT_FOR)
    old_notices = list(notices.values_list("pk", flat=True)[:AT_ONCE])
    old_alerts = list(alerts.order_by("fired_at").values_list("pk", flat=True)[:AT_ONCE])
    AlertNotice.objects.filter(pk__in=old_notices).delete()
    Alert.objects.filter(pk__in=old_alerts).delete()
    return len(old_notices) + len(old_alerts)
