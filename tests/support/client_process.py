"""A foreign client as a process that a test drives: a JSON object a line, commands in, answers and events out.

A command is {"id":1,"do":"send",…}; its answer {"id":1,"ok":true,"value":…} or {"id":1,"ok":false,"error":…}. What a
listener gets is {"event":"consumed","consumer":NAME,…}. Commands run side by side; every wait has a deadline. The end
of standard input ends the process.
"""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from remoting.wire import lenient_json
from tests.support.children import Child
from tests.support.waiting import WITHIN_S, wait_until

ANSWER_WITHIN_S = 120.0


class ClientProcessError(Exception):
    """What the driven client threw or returned as its error: its kind, RocketMQ's response code (-1: none)."""

    def __init__(self, text: str, kind: str = "", code: int = -1) -> None:
        super().__init__(text)
        self.kind = kind
        self.code = code


class ClientProcess:
    """One process can hold many producers and consumers, of several clusters; `namesrv` is their default."""

    error: type[ClientProcessError] = ClientProcessError

    def __init__(
        self, command: Sequence[str], folder: Path, namesrv: str, *, env: Mapping[str, str] | None = None
    ) -> None:
        self.namesrv = namesrv
        self._ids = itertools.count(1)
        self._arrived = threading.Condition()
        self._answers: dict[int, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._writing = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self.child = Child(
            command, folder / "driver.log", env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
        )
        self._reader = threading.Thread(target=self._read, name="driver", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """At once, without farewell to any broker: what a crash of a client machine looks like."""
        self.child.process.kill()
        self._reader.join(10)
        self.child.kill()

    def on(self, namesrv: str) -> Self:
        """The same process, for another cluster."""
        other = copy.copy(self)
        other.namesrv = namesrv
        return other

    # what a test asks of it

    def call(self, do: str, within_s: float = ANSWER_WITHIN_S, **arguments: Any) -> Any:
        """The command's value. Raises `error` with the client's text, AssertionError after the deadline."""
        number = self.post(do, **arguments)
        return self.answer(number, within_s)

    def post(self, do: str, **arguments: Any) -> int:
        """Sends a command and returns at once; its number goes to `answer`."""
        number = next(self._ids)
        line = json.dumps({"id": number, "do": do, **arguments})
        stdin = self.child.process.stdin
        if stdin is None:
            raise AssertionError("the driver has no standard input")
        with self._writing:
            stdin.write(line.encode() + b"\n")
            stdin.flush()
        return number

    def answer(self, number: int, within_s: float = ANSWER_WITHIN_S) -> Any:
        with self._arrived:
            self._arrived.wait_for(lambda: number in self._answers or not self.child.is_running, within_s)
            answer = self._answers.pop(number, None)
        if answer is None:
            raise AssertionError(f"no answer from the driver within {within_s} s:\n{self.child.output()}")
        if not answer["ok"]:
            raise self.error(answer["error"], answer.get("kind", ""), answer.get("code", -1))
        return answer.get("value")

    def producer(self, name: str, group: str | None = None, **options: Any) -> str:
        """The new producer's client id."""
        return self.call("producer", name=name, group=group or f"{name}-group", **{"namesrv": self.namesrv, **options})

    def send(self, producer: str, topic: str, within_s: float = WITHIN_S, **options: Any) -> list[dict[str, Any]]:
        """Options: mode (sync, async, oneway, batch), count, first, body, size, tag, keys, delay_level, queue; and more
        in the driver's sources."""
        return self.call("send", within_s, producer=producer, topic=topic, **options)

    def consumer(self, name: str, group: str, topic: str | None = None, **options: Any) -> str:
        """The new member's client id. For the options see the driver's sources."""
        return self.call("consumer", name=name, group=group, topic=topic, **{"namesrv": self.namesrv, **options})

    def stop(self, name: str) -> None:
        """The client's own orderly shutdown."""
        self.call("stop", name=name)

    def admin(self, what: str, **arguments: Any) -> Any:
        """See the driver's sources for what there is."""
        return self.call("admin", what=what, **{"namesrv": self.namesrv, **arguments})

    # what its listeners got

    def events(self, kind: str, *names: str) -> list[dict[str, Any]]:
        """Of one kind ("consumed", …) in order of arrival; of these clients only, when any is named."""
        with self._arrived:
            events = [event for event in self._events if event["event"] == kind]
        return [event for event in events if not names or event.get("consumer", event.get("producer")) in names]

    def wait_events(self, kind: str, count: int, *names: str, within_s: float = WITHIN_S) -> list[dict[str, Any]]:
        """As `events`, when there are at least `count`. Raises AssertionError after the deadline."""
        what = f"{count} events {kind} of {names}"
        return wait_until(lambda: found if len(found := self.events(kind, *names)) >= count else None, within_s, what)

    def consumed(self, *consumers: str) -> list[dict[str, Any]]:
        """What listeners got so far."""
        return self.events("consumed", *consumers)

    def wait_consumed(self, count: int, *consumers: str, within_s: float = WITHIN_S) -> list[dict[str, Any]]:
        return self.wait_events("consumed", count, *consumers, within_s=within_s)

    def _read(self) -> None:
        for line in self.child.process.stdout or ():
            self._handle_line(line)
        with self._arrived:
            self._arrived.notify_all()

    def _handle_line(self, line: bytes) -> None:
        if not line.startswith(b"{"):
            return  # a greeting that some library prints
        fields = lenient_json.loads(line)  # fastjson leaves number keys unquoted
        with self._arrived:
            if "event" in fields:
                self._events.append(fields)
            else:
                self._answers[fields["id"]] = fields
            self._arrived.notify_all()
