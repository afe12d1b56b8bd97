"""What events publish: that there are new ones. Sent after they are committed."""

from __future__ import annotations

from django.dispatch import Signal

# Events were recorded, up to the number `last_id`. → int
events_recorded = Signal()
