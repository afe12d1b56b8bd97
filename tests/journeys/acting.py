"""Actions as an administrator runs them: looked at first, then carried out on what was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqadmin.actions import registry, runner
from mqadmin.actions.caller import Person
from mqadmin.actions.declaration import Action
from mqadmin.actions.runs import Result
from tests.support.callers import caller

Act = Callable[..., Result]


def acting(person: Person, cluster: str) -> Act:
    """Returns a function of an action's name and arguments that previews it and runs it on the cluster."""

    def act(action: str, **values: Any) -> Result:
        declared = registry.find(action)
        where = cluster if isinstance(declared, Action) else ""
        seen = runner.preview(caller(person), action, where, values)
        result = runner.run(
            caller(person),
            action,
            where,
            values,
            fingerprint=seen.fingerprint,
            confirmation=str(values[declared.subject]),
        )
        assert isinstance(result, Result)
        return result

    return act
