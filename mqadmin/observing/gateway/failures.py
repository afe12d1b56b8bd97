"""Turns what goes wrong between the console and a cluster into errors and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from remoting.client.errors import ClientError
from remoting.wire.errors import WireError


class GatewayError(Exception):
    """Nothing could be learned; the text names the address and what is wrong with it."""


class NotWatchable(GatewayError):
    """The broker answers, and does not know the watch request: it is Apache's."""


class PartialError(GatewayError):
    """Some brokers did not answer: address → why."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        super().__init__("; ".join(failures.values()))
        self.failures = dict(failures)


@dataclass(slots=True)
class Failures:
    """Why which address did not answer; the first reason is kept."""

    reasons: dict[str, str] = field(default_factory=dict)

    def note(self, address: str, error: Exception) -> None:
        self.reasons.setdefault(address, str(error) or type(error).__name__)

    def error(self) -> PartialError | None:
        return PartialError(self.reasons) if self.reasons else None


@dataclass(frozen=True, slots=True)
class ChangeFailure:
    """Why a change was not made. `is_unknown`: no answer came, so it may have been made."""

    reason: str
    is_unknown: bool


@contextmanager
def as_gateway_error() -> Iterator[None]:
    """Raises GatewayError for what the client or the wire raises inside the block."""
    try:
        yield
    except (ClientError, WireError, ValueError) as error:
        raise GatewayError(str(error)) from error
