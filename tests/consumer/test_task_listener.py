"""A Celery task as a listener, with a Celery worker in this process over Celery's in-memory transport."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker

from consumer.engine.message import Message
from consumer.listener import registry
from consumer.task_listener import TaskListener, TaskSilent, task_listener
from consumer.task_replies import TaskFailed
from tests.support.waiting import wait_until

RAN: list[Any] = []


@pytest.fixture(scope="module")
def app() -> Iterator[Celery]:
    made = Celery("tasks", broker="memory://", set_as_current=False)
    made.conf.update(task_ignore_result=True, accept_content=["json"], worker_hijack_root_logger=False)

    @made.task(name="bill")
    def bill(order: dict[str, int]) -> None:
        RAN.append(order)

    @made.task(name="mail")
    def mail(*, key: str) -> None:
        RAN.append(key)

    @made.task(name="fail")
    def fail(order: object) -> None:
        raise ValueError(f"no such order: {order}")

    @made.task(name="again", bind=True, max_retries=3)
    def again(self: Any, order: int) -> None:
        RAN.append(self.request.retries)
        if self.request.retries < 2:
            raise self.retry(countdown=0)

    yield made
    # They end a moment after the loop of their test, and would write into the log of other tests.
    wait_until(lambda: not any(thread.name == "task replies" for thread in threading.enumerate()))
    made.close()


@pytest.fixture(scope="module")
def worked(app: Celery) -> Iterator[Celery]:
    """The application while a worker takes its tasks; it needs seconds to end."""
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=20):
        yield app


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def message(body: str) -> Message[Any]:
    return Message(topic="orders", body=body.encode(), properties={"KEYS": "order-7"})


@pytest.mark.slow
async def test_a_message_is_consumed_when_its_task_has_ended(worked: Celery) -> None:
    call = TaskListener(worked.tasks["bill"], None, 20, {})
    await asyncio.gather(*[call(message(f'{{"id": {number}}}')) for number in range(5)])
    assert sorted(order["id"] for order in RAN) == [0, 1, 2, 3, 4]


@pytest.mark.slow
async def test_a_task_gets_the_arguments_that_are_made_of_the_message(worked: Celery) -> None:
    call = TaskListener(worked.tasks["mail"], lambda message: {"key": message.properties["KEYS"]}, 20, {"priority": 3})
    await call(message("no JSON at all"))
    assert RAN == ["order-7"]


@pytest.mark.slow
async def test_a_task_that_raises_fails_its_message_with_the_reason(worked: Celery) -> None:
    with pytest.raises(TaskFailed, match="ValueError: no such order: 7"):
        await TaskListener(worked.tasks["fail"], None, 20, {})(message("7"))


@pytest.mark.slow
async def test_a_task_that_retries_itself_ends_with_its_last_try(worked: Celery) -> None:
    await TaskListener(worked.tasks["again"], None, 20, {})(message("7"))
    assert RAN == [0, 1, 2]


async def test_a_task_that_no_worker_takes_is_not_awaited_for_ever(app: Celery) -> None:
    with pytest.raises(TaskSilent, match=r"task bill did not end within 0\.05 s"):
        await TaskListener(app.tasks["bill"], None, 0.05, {"queue": "nobody's"})(message("7"))


@pytest.mark.parametrize("timeout_s", [0, 30, 31])
def test_a_time_out_that_could_not_be_reached_is_refused(app: Celery, timeout_s: float) -> None:
    with pytest.raises(ValueError, match=r"task_timeout_s is .* below the group's consume_timeout_s, 30"):
        task_listener(
            app.tasks["bill"], group="billing", topic="orders", task_timeout_s=timeout_s, consume_timeout_s=30
        )
    assert "billing" not in registry.groups
