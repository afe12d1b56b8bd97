"""One SQL92 expression, ready to judge messages."""

from __future__ import annotations

from broker.engine.filters.parser import parse
from broker.engine.filters.source import compiled


class PropertyFilter:
    """It never changes and may be shared."""

    def __init__(self, text: str) -> None:
        """Raises FilterError."""
        self.text = text
        # Takes a message's properties as `remoting/wire/properties_text.py` has them; whether it gets through:
        # unknown and incomparable ones don't.
        self.matches = compiled(parse(text))
