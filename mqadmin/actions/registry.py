"""All actions by name. Subjects register theirs when Django starts (`AppConfig.ready`); nothing is added later."""

from __future__ import annotations

from mqadmin.actions.declaration import AnyAction

ACTIONS: dict[str, AnyAction] = {}


class UnknownAction(LookupError):
    """The name is that of no action."""


def register(*actions: AnyAction) -> None:
    """Adds actions. Raises ValueError for a name that is taken."""
    for action in actions:
        if ACTIONS.setdefault(action.name, action) is not action:
            raise ValueError(f"two actions are named {action.name!r}: give one another name")


def find(name: str) -> AnyAction:
    """Returns the action of that name. Raises UnknownAction."""
    try:
        return ACTIONS[name]
    except KeyError:
        raise UnknownAction(name) from None
