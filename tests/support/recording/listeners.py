"""One line per consumed message in the file RECORDED: group, pid, queue, queue offset, and its body.

The groups: "plain" calls a plain function, "async" an async one; on the cluster "second", where there is one, a group
has the name "plain", too; "tasks" sends Celery tasks. RECORDING_INSTANCES are wanted of the first three,
RECORDING_TAKES_S is what a message of theirs takes.
"""

from __future__ import annotations

import asyncio
import os
import time

from django.conf import settings

from consumer import Message, listener
from consumer.task_listener import task_listener
from tests.support.recording.lines import write_line
from tests.support.recording.tasks import work

TOPIC = "records"
INSTANCES = int(os.environ.get("RECORDING_INSTANCES", "1"))
TAKES_S = float(os.environ.get("RECORDING_TAKES_S", "0"))


@listener(group="plain", topic=TOPIC, wanted_instances=INSTANCES, consume_from="first")
def plain(message: Message) -> None:
    time.sleep(TAKES_S)
    record("plain", message)


@listener(group="async", topic=TOPIC, wanted_instances=INSTANCES, consume_from="first")
async def not_plain(message: Message) -> None:
    await asyncio.sleep(TAKES_S)
    record("async", message)


if "second" in settings.MQADMIN_CLUSTERS:

    @listener(group="plain", topic=TOPIC, cluster="second", wanted_instances=INSTANCES, consume_from="first")
    def there(message: Message) -> None:
        record("plain@second", message)


task_listener(
    work,
    group="tasks",
    topic="work",
    arguments=lambda message: {"body": message.text},
    task_timeout_s=60,
    send_options={"queue": "work"},
    wanted_instances=1,
    consume_from="first",
)


def record(group: str, message: Message) -> None:
    assert message.queue is not None
    write_line(f"{group} {os.getpid()} {message.queue.queue_id} {message.queue_offset} {message.text}\n")
