"""Starts children in order, keeps them running, stops them in the stated order.

Children come in stages: those of one start together, and the next stage waits until all of them are ready. One that
ends before it was ever ready stops everything: that is a fault of this machine (a taken port, a folder without
rights), and starting it again would hide it. One that ends later is started again, with growing pauses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from mqadmin.supervision.child import Child, ChildSpec
from mqadmin.supervision.fork_server import ForkServer
from mqadmin.supervision.parent_death import END_WITH_PARENT, EndWithParent

RESTART_PAUSE_MIN_S = 0.5
RESTART_PAUSE_MAX_S = 30.0
# A signal to every process of a service reaches a child and its parent at the same moment, in either order: before the
# end of a child is called a failure, the parent has had this long to learn that all is to stop.
SETTLE_S = 0.25
# A child that ran for longer is started again after the shortest pause.
STEADY_AFTER_S = 60.0


class StartFailed(Exception):
    """A child ended, or its time was over, before it was ready; the text has its name and its last output."""


class Supervisor:
    """Starts, keeps and stops the children of an install.

    `stages`: in the order of starting. `stop_order`: names in stages of stopping; all others last, one by one.
    `restart_pause_min_s`: the pause before a child that ended is started again; it doubles each time.
    `fork_server`: of which processes may be forked, itself a child of the first stage.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[ChildSpec]],
        stop_order: Sequence[Sequence[str]],
        on_line: Callable[[str, str], None],
        *,
        restart_pause_min_s: float = RESTART_PAUSE_MIN_S,
        end_with_parent: EndWithParent = END_WITH_PARENT,
        fork_server: ForkServer | None = None,
    ) -> None:
        self._stages = list(stages)
        self._stop_order = list(stop_order)
        self._on_line = on_line
        self._restart_pause_min_s = restart_pause_min_s
        self._end_with_parent = end_with_parent
        self._fork_server = fork_server
        self._children: dict[str, Child] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Starts the stages; returns when every child is ready. Raises StartFailed: `stop` must be called even then."""
        for stage in self._stages:
            children = [await self._start_child(spec) for spec in stage]
            for is_ready, child in zip(
                await asyncio.gather(*(child.wait_ready() for child in children)), children, strict=True
            ):
                if not is_ready:
                    raise StartFailed(_why_not_ready(child))
                if child.spec.runs_once:
                    continue
                self._keepers[child.spec.name] = asyncio.create_task(self._keep(child), name=f"keep-{child.spec.name}")

    async def stop(self) -> None:
        """Stops the children, stage after stage; none of them is started again."""
        for keeper in self._keepers.values():
            keeper.cancel()
        await asyncio.gather(*self._keepers.values(), return_exceptions=True)
        for names in self._stages_to_stop():
            await asyncio.gather(*(self._children[name].stop() for name in names))

    def pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._children.items() if child.is_running}

    def _stages_to_stop(self) -> list[list[str]]:
        named = [[name for name in stage if name in self._children] for stage in self._stop_order]
        others = [name for name in reversed(self._children) if not any(name in stage for stage in named)]
        return named + [[name] for name in others]

    async def _start_child(self, spec: ChildSpec) -> Child:
        child = Child(spec, self._on_line, self._end_with_parent, self._fork_server)
        try:
            await child.start()
        except OSError as error:
            raise StartFailed(f"{spec.name}: {spec.command[0]} cannot be run: {error.strerror}") from error
        self._children[spec.name] = child
        return child

    async def _keep(self, child: Child) -> None:
        """Starts the child again whenever it ends, until cancelled."""
        pause_s = self._restart_pause_min_s
        while True:
            code = await child.wait()
            await asyncio.sleep(SETTLE_S)
            if time.monotonic() - child.started_s > STEADY_AFTER_S:
                pause_s = self._restart_pause_min_s
            self._on_line(child.spec.name, f"ended ({_ending(code)}); starting again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RESTART_PAUSE_MAX_S)
            try:
                child = await self._start_child(child.spec)
                await child.wait_ready()
            except StartFailed as error:
                self._on_line(child.spec.name, str(error))


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _why_not_ready(child: Child) -> str:
    name = child.spec.name
    if child.exit_code is None:
        head = f"{name} was not ready within {child.spec.ready_timeout_s:g} s; it said last:"
    else:
        head = f"{name} ended ({_ending(child.exit_code)}) before it was ready; it said last:"
    return "\n".join([head, *(f"    {line}" for line in child.last_lines)])
