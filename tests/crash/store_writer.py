"""Run by the kill test: appends for ever; says on stdout what it tries (T up-to) and what is acknowledged (A number).

python -m tests.crash.store_writer FOLDER sync|async FIRST_NUMBER
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import MessageDraft, StoreConfig
from tests.support.stores import draft

QUEUE_COUNT = 3
ROUND_MESSAGES = 40


def body_of(number: int) -> bytes:
    return b"%d:" % number + b"%d" % (number % 10) * (number * 37 % 900)


def message(number: int) -> MessageDraft:
    return draft(body_of(number), queue_id=number % QUEUE_COUNT, keys=f"k{number}", tags="t")


async def write_for_ever(folder: Path, flush: str, number: int) -> None:
    config = StoreConfig(
        flush="sync" if flush == "sync" else "async",
        segment_bytes=1 << 18,
        queue_file_entries=1000,
        checkpoint_bytes=200_000,
        flush_interval_ms=20,
    )
    store = MessageStore.open(folder, config)
    while True:
        os.write(1, b"T%d\n" % (number + ROUND_MESSAGES))
        drafts = [message(number + step) for step in range(ROUND_MESSAGES)]
        half = ROUND_MESSAGES // 2
        appended = [store.append(one) for one in drafts[:half]] + store.append_batch(drafts[half:])
        for step, one in enumerate(appended):

            def done(error: Exception | None, number: int = number + step) -> None:
                assert error is None
                os.write(1, b"A%d\n" % number)

            store.when_flushed(one.commit_log_offset + one.total_bytes, done)
        number += ROUND_MESSAGES
        await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(write_for_ever(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
