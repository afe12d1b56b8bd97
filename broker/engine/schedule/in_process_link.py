"""The link between a driver and the scheduler of the same process (`--scheduler internal`)."""

from __future__ import annotations

import asyncio

from broker.engine.schedule.driver import LeaseAnswer, StaleEpoch, Step, StepRefused
from broker.engine.schedule.scheduler import LeaseRequest, Scheduler


class InProcessLink:
    """Link of a driver that calls the scheduler directly, without a connection."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def lease(self, driver: str, epoch: int, lease_ms: int, wait_ms: int) -> LeaseAnswer:
        answered: asyncio.Future[LeaseAnswer] = asyncio.get_running_loop().create_future()

        def answer(lease: LeaseAnswer) -> None:
            if not answered.done():
                answered.set_result(lease)

        self._scheduler.ask(LeaseRequest(driver, epoch, lease_ms, wait_ms), answer)
        return await answered

    async def step(self, epoch: int, step: Step) -> int:
        try:
            return self._scheduler.step(epoch, step.kind, step.key, step.until_ms).count
        except StaleEpoch:
            raise
        except Exception as error:
            # As over a connection: any exception of a handler is one refused step.
            raise StepRefused(f"{step.kind} {step.key}: {error!r}") from error
