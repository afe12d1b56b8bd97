"""Where an expression can fail: what is looked at only because it could is left out where it cannot."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from broker.engine.filters.tree import (
    NUMBERS,
    TEXTS,
    AllOf,
    AnyOf,
    Comparison,
    Constant,
    IsNull,
    Kind,
    Named,
    Node,
    Not,
    Nothing,
    TextTest,
    common_type,
)

_NONE: frozenset[Hashable] = frozenset()


class Failures:
    """Of the nodes of one tree, each found once: the tree must live as long."""

    def __init__(self) -> None:
        self._of: dict[int, frozenset[Hashable]] = {}

    def of(self, node: Node) -> frozenset[Hashable]:
        """Properties made numbers, as (name, kind of number); a comparison that fails otherwise, as its identity."""
        found = self._of.get(id(node))
        if found is None:
            found = self._of[id(node)] = self._found(node)
        return found

    def are_behind_the_first(self, parts: Sequence[Node]) -> bool:
        """A number that the first part could make, or whose property it found missing, fails in no other part."""
        first = parts[0]
        made = self._made(first) if isinstance(first, Comparison) else _NONE
        return any(self.of(part) - made for part in parts[1:])

    def _found(self, node: Node) -> frozenset[Hashable]:
        match node:
            case Comparison(_, left, right):
                own = self._made(node) or (frozenset((id(node),)) if _can_fail(node) else _NONE)
                return own | self.of(left) | self.of(right)
            case Not(of) | IsNull(of) | Nothing(of) | TextTest(_, of):
                return self.of(of)
            case AnyOf(parts) | AllOf(parts):
                return _NONE.union(*map(self.of, parts))
        return _NONE

    def _made(self, comparison: Comparison) -> frozenset[Hashable]:
        """The usual comparison: of a property and a number."""
        match comparison.left, comparison.right:
            case (Named(name), Constant(kind)) | (Constant(kind), Named(name)) if kind in NUMBERS:
                return frozenset(((name, common_type(kind, Kind.PROPERTY)),))
        return _NONE


def _can_fail(comparison: Comparison) -> bool:
    kinds = {comparison.left.kind, comparison.right.kind}
    if Kind.CONDITION in kinds:
        return comparison.right.kind in TEXTS
    return not (comparison.sign == "=" and kinds <= TEXTS)
