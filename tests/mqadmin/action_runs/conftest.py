"""An action for tests: it paints the doors of a house, each door an item of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from django import forms
from django.core.exceptions import ValidationError

from mqadmin.actions import registry
from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import Action, Change, ItemOutcome, Preview, Undo
from mqadmin.clusters.models import Cluster

NAME = "paint_doors"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaintDoors:
    house: Annotated[str, forms.CharField(label="House", max_length=20)]
    colour: Annotated[str, forms.ChoiceField(label="Colour", choices=[(c, c) for c in ("red", "blue")])] = "red"
    doors: Annotated[tuple[str, ...], forms.MultipleChoiceField(choices=[(d, d) for d in "abc"])] = ()
    coats: Annotated[int, CountField(label="Coats", min_value=1)] = 2
    is_glossy: Annotated[bool, forms.BooleanField(label="Glossy")] = False


@dataclass
class House:
    """What the doors are like now, and what happens to whoever paints them: door → a function of its change."""

    doors: dict[str, str] = field(default_factory=lambda: dict.fromkeys("ab", "white"))
    fates: dict[str, Callable[[Change], ItemOutcome]] = field(default_factory=dict)
    refusal: Exception | None = None
    painted: list[tuple[str, str]] = field(default_factory=list)
    # Called in the middle of the work.
    meanwhile: Callable[[], None] = lambda: None

    def preview(self, cluster: Cluster, arguments: PaintDoors) -> Preview[None]:
        if self.refusal is not None:
            raise self.refusal
        if arguments.colour == "blue" and arguments.is_glossy:
            raise ValidationError({"is_glossy": "Blue is never glossy."})
        doors = arguments.doors or tuple(self.doors)
        changes = [Change(door, {"colour": self.doors[door]}, {"colour": arguments.colour}) for door in doors]
        return Preview(tuple(changes), plan=None)

    def carry_out(self, cluster: Cluster, arguments: PaintDoors, preview: Preview[None]) -> Iterator[ItemOutcome]:
        self.meanwhile()
        for change in preview.changes:
            if change.item in self.fates:
                yield self.fates[change.item](change)
                continue
            self.painted.append((change.item, arguments.colour))
            self.doors[change.item] = arguments.colour
            yield change.done()

    def undo(self, arguments: PaintDoors, outcomes: Sequence[ItemOutcome]) -> Undo | None:
        return Undo(NAME, {"house": arguments.house, "colour": "red"})


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    """A house whose action is registered for the test."""
    house = House()
    action: Action[PaintDoors, None] = Action(
        name=NAME,
        title="Paint the doors",
        permission="mq_clusters.change_topic",
        arguments=PaintDoors,
        subject="house",
        preview=house.preview,
        carry_out=house.carry_out,
        undo=house.undo,
    )
    monkeypatch.setitem(registry.ACTIONS, NAME, action)
    return house


@pytest.fixture
def cluster(db: Any) -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876")
