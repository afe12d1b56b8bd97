"""What happens to hosted instances, for whoever wants to tell people: `sender` InstanceLease, argument `lease`.

Sent in the process in which it was noticed: that of the instance, or the supervision's. A receiver that raises is
logged and disturbs nobody.
"""

from __future__ import annotations

from django.dispatch import Signal

instance_started = Signal()
instance_ended = Signal()
