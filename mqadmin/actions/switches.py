"""Actions that switch something on or off by an argument that is "yes" or "no": their opposite takes them back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqadmin.actions.declaration import ItemOutcome, ItemState, Undo

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def yes_no(is_so: bool) -> str:
    """Returns the word that stands for it in arguments, and in the values of a preview."""
    return "yes" if is_so else "no"


def undo_of_switch(
    action: str, arguments: DataclassInstance, switch: str, outcomes: Sequence[ItemOutcome]
) -> Undo | None:
    """Returns the same action with the opposite of the argument `switch`, where the run changed something."""
    if outcomes[0].state != ItemState.DONE:
        return None
    values = dataclasses.asdict(arguments)
    return Undo(action, values | {switch: yes_no(values[switch] == "no")})
