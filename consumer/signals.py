"""Django signals about hosted instances: `sender` is InstanceLease, argument `lease`.

Sent in the instance's process, or in supervision's when the instance was lost. An exception of a receiver is logged and
stops neither the instance nor the other receivers.
"""

from __future__ import annotations

from django.dispatch import Signal

instance_started = Signal()
instance_ended = Signal()
