"""One SQL92 expression, ready to judge messages."""

from __future__ import annotations

from remoting.sql92.code_generator import generated
from remoting.sql92.interpreter import interpreted
from remoting.sql92.parser import parse


class PropertyFilter:
    """Never changes and may be shared.

    `matches` takes the properties of a message as `remoting/wire/property_lookup.py` has them and returns whether the
    message gets through.
    """

    def __init__(self, text: str) -> None:
        """Raises FilterError where `text` is no SQL92 expression."""
        self.text = text
        tree = parse(text)
        self.matches = generated(tree) or interpreted(tree)
