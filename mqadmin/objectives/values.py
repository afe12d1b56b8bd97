"""Which objective holds for a group. Pure.

From strong to weak: the group's own name; the longest pattern that fits; what its listeners' code says; `*`, the whole
cluster; what ships, a minute.

    billing-*   120 s        billing-eu   10 s        *   300 s
    billing-eu → 10 s        billing-us → 120 s       orders → 300 s
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

# A minute: what people notice, and twelve commits.
DEFAULT_LAG_S = 60
# A month: more than any broker keeps messages by default.
LAG_S_MAX = 30 * 86_400
LAG_MAX = 10**15
EVERYTHING = "*"
_WILD = "*?["


@dataclass(frozen=True, slots=True)
class Allowed:
    """For how long a message may wait, and how many may (None: any number). `of`: the name or pattern that says so.

    `of` "" is what ships. `is_declared`: the listeners' code says so.
    """

    lag_s: int = DEFAULT_LAG_S
    lag: int | None = None
    of: str = ""
    is_declared: bool = False


@dataclass(frozen=True, slots=True)
class Objectives:
    """Those of one cluster at one moment: by the group's name, patterns (the strongest first), of everything."""

    named: Mapping[str, Allowed] = field(default_factory=dict)
    patterns: tuple[Allowed, ...] = ()
    declared: Mapping[str, Allowed] = field(default_factory=dict)
    everything: Allowed = Allowed()

    @classmethod
    def of(cls, rows: Iterable[Allowed]) -> Objectives:
        found = list(rows)
        said = {one.of: one for one in found if not one.is_declared}
        patterns = [one for name, one in said.items() if is_pattern(name) and name != EVERYTHING]
        return cls(
            named={name: one for name, one in said.items() if not is_pattern(name)},
            patterns=tuple(sorted(patterns, key=lambda one: (-len(one.of), one.of))),
            declared={one.of: one for one in found if one.is_declared},
            everything=said.get(EVERYTHING, Allowed()),
        )

    def of_group(self, name: str) -> Allowed:
        """Returns what holds for the group."""
        if name in self.named:
            return self.named[name]
        fitting = next((one for one in self.patterns if fnmatchcase(name, one.of)), None)
        return fitting or self.declared.get(name, self.everything)


def is_pattern(name: str) -> bool:
    return any(sign in name for sign in _WILD)
