"""The members' former place, for one test that is about to move."""

from broker.engine.groups.members import Client

__all__ = ["Client"]
