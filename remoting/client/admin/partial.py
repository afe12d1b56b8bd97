"""One call to many servers, or about many things: what was answered, and what failed with which error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from remoting.client.errors import ClientError
from remoting.wire.errors import WireError

# All answers of one round; what has not come by then is an error of its key.
ROUND_TIMEOUT_MS = 20_000

K = TypeVar("K")
V = TypeVar("V")


class NotAnswered(ClientError, TimeoutError):
    """Raised, or kept as an error, when a round was over before an answer came: a change may have been carried out."""

    def __init__(self, key: object, round_timeout_ms: int) -> None:
        super().__init__(f"{key} did not answer within {round_timeout_ms} ms")


@dataclass(slots=True)
class Partial(Generic[K, V]):
    """Answers and errors by key, most often a server's address. Every key that was asked about is in one of them."""

    answers: dict[K, V] = field(default_factory=dict)
    errors: dict[K, Exception] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.errors

    def complete(self) -> dict[K, V]:
        """Returns the answers. Raises the first error, if there is one."""
        for error in self.errors.values():
            raise error
        return self.answers


async def ask_each(
    keys: Iterable[K], call: Callable[[K], Awaitable[V]], *, timeout_ms: int = ROUND_TIMEOUT_MS
) -> Partial[K, V]:
    """Returns what `call` answered for each key, within `timeout_ms` for all together.

    ClientError and WireError become the key's error; any other is our own mistake, and is raised after all have ended.
    How many requests are in flight at once is bounded by the `Admin` that `call` uses.
    """
    tasks = {key: asyncio.ensure_future(call(key)) for key in dict.fromkeys(keys)}
    if tasks:
        try:
            _, late = await asyncio.wait(tasks.values(), timeout=timeout_ms / 1000)
        finally:
            for task in tasks.values():
                task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    partial: Partial[K, V] = Partial()
    for key, task in tasks.items():
        if task.cancelled():
            partial.errors[key] = NotAnswered(key, timeout_ms)
            continue
        error = task.exception()
        if error is None:
            partial.answers[key] = task.result()
        elif isinstance(error, ClientError | WireError):
            partial.errors[key] = error
        else:
            raise error
    return partial
