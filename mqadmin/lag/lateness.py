"""When a cycle of sampling is late. Apart from what samples: the history and its readers need no database for it."""

from __future__ import annotations

# A cycle that begins later than this after the last one leaves a gap: one and a half cycles.
LATE_AFTER_S = 45
