"""The signal that a worker's processes, threads and event loops wait for."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from remoting.shutdown_signal import ShutdownSignal
from tests.support.forked import exit_code, fork


@pytest.fixture(params=[pytest.param(hasattr(os, "eventfd"), id="as here"), pytest.param(False, id="as on macOS")])
def shutdown(request: pytest.FixtureRequest) -> Iterator[ShutdownSignal]:
    made = ShutdownSignal(has_eventfd=request.param)
    yield made
    made.close()


async def test_set_wakes_all_waiting_tasks_and_those_that_wait_later(shutdown: ShutdownSignal) -> None:
    waiting = [asyncio.create_task(shutdown.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not shutdown.is_set
    shutdown.set()

    await asyncio.wait_for(asyncio.gather(*waiting), 60)
    await asyncio.wait_for(shutdown.wait(), 60)
    assert shutdown.is_set


async def test_two_waits_on_one_loop_do_not_disturb_each_other(shutdown: ShutdownSignal) -> None:
    """One of them is cancelled; the other still hears the signal."""
    first, second = asyncio.create_task(shutdown.wait()), asyncio.create_task(shutdown.wait())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    shutdown.set()
    await asyncio.wait_for(second, 60)


def test_set_wakes_the_event_loops_of_other_threads_and_waiting_threads(shutdown: ShutdownSignal) -> None:
    with ThreadPoolExecutor(2) as threads:
        loop = threads.submit(lambda: asyncio.run(asyncio.wait_for(shutdown.wait(), 60)))
        thread = threads.submit(shutdown.wait_in_thread, 10.0)
        shutdown.set()
        assert loop.result(60) is None
        assert thread.result(60) is True


def test_wait_in_thread_gives_up_after_its_time(shutdown: ShutdownSignal) -> None:
    assert shutdown.wait_in_thread(0.001) is False


def test_a_selector_finds_it_readable(shutdown: ShutdownSignal) -> None:
    poll = select.poll()
    poll.register(shutdown, select.POLLIN)
    assert poll.poll(0) == []
    shutdown.set()
    assert poll.poll(0) == [(shutdown.fileno(), select.POLLIN)]


def test_setting_it_without_end_never_blocks(shutdown: ShutdownSignal) -> None:
    """More often than a pipe has room for."""
    for _ in range(20_000):
        shutdown.set()
    assert shutdown.is_set


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_that_was_forked_before_hears_it(shutdown: ShutdownSignal) -> None:
    child = fork(lambda: asyncio.run(shutdown.wait()))
    shutdown.set()
    assert exit_code(child) == 0


def test_set_may_interrupt_itself_in_a_signal_handler(shutdown: ShutdownSignal) -> None:
    """Signals sent in a burst from another thread land anywhere in the handler of the one before."""
    handled = 0

    def handle(*_: object) -> None:
        nonlocal handled
        shutdown.set()
        handled += 1

    def send() -> None:
        # To the thread that runs handlers: of a process, any thread may get it, and long after the handler has gone.
        for _ in range(2000):
            signal.pthread_kill(receiver, signal.SIGUSR1)

    receiver = threading.get_ident()
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        sender = threading.Thread(target=send)
        sender.start()
        while sender.is_alive():
            shutdown.set()
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handled > 0
    assert shutdown.is_set
