"""Callers of actions, as a page makes them of its request."""

from __future__ import annotations

from mqadmin.people.caller import Caller, Person, Way


def caller(person: Person) -> Caller:
    """Who asks from a page of the console."""
    return Caller(person=person, way=Way.PAGE, address="192.0.2.7", user_agent="Firefox")
