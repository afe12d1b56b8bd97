"""Names of RocketMQ's version numbers (`MQVersion`), which count up by one per snapshot and release."""

from __future__ import annotations

# MQVersion.V4_0_0's number if the enum were regular from there on, as it is from V4_1_0_SNAPSHOT (232) on.
_V4_0_0 = 213
_FIRST_REGULAR = 232


def version_name(number: int) -> str:
    """Returns `5.4.0` for 493, `4.9.5-SNAPSHOT` for 402, `before 4.1` below the regular part."""
    if number < _FIRST_REGULAR:
        return "before 4.1"
    steps = number - _V4_0_0
    is_snapshot = steps % 2 == 1
    patches = (steps + 1) // 2
    name = f"{4 + patches // 100}.{patches // 10 % 10}.{patches % 10}"
    return f"{name}-SNAPSHOT" if is_snapshot else name
