"""SCHEDULER_STEP (29012): carry out what is due on one subject, under the epoch of the lease."""

from __future__ import annotations

from broker.engine.schedule.driver import StaleEpoch
from broker.engine.schedule.scheduler import Scheduler
from broker.engine.sending.accepting import refusal
from broker.engine.serving.requests import Request
from broker.engine.store.errors import StoreError
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.scheduler import SchedulerStepHeader, SchedulerStepResponseHeader
from remoting.wire.headers.typed import read_header, write_header


class SchedulerStep:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __call__(self, request: Request) -> Command:
        """Raises WireError with the code to answer."""
        command = request.command
        header = read_header(SchedulerStepHeader, command.ext_fields)
        try:
            carried = self._scheduler.step(header.epoch, header.kind, header.key, header.until_ms)
        except StaleEpoch as error:
            raise MessageError(str(error), ResponseCode.SCHEDULER_EPOCH_STALE) from error
        except KeyError as error:
            raise MessageError(
                f"this broker schedules nothing of kind {header.kind!r} with key {header.key!r}",
                ResponseCode.INVALID_PARAMETER,
            ) from error
        except StoreError as error:
            raise refusal(error) from error
        answer = SchedulerStepResponseHeader(delivered=carried.count, late_ms=carried.late_ms)
        return response(command, ResponseCode.SUCCESS, ext_fields=write_header(answer))
