"""One SQL92 expression, ready to judge messages."""

from __future__ import annotations

from broker.engine.filters.code_generator import generated
from broker.engine.filters.interpreter import interpreted
from broker.engine.filters.parser import parse


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
