"""What supervised processes print, as their supervisor is told of it."""

from __future__ import annotations


class Lines:
    """Keeps each line with the name of who printed it; passed as `on_line`."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def __call__(self, name: str, text: str) -> None:
        self.said.append((name, text))

    def has(self, name: str, part: str) -> bool:
        return any(part in text for text in self.of(name))

    def of(self, name: str) -> list[str]:
        return [text for said, text in self.said if said == name]
