"""Finds out what became of messages whose send has no outcome: after a crash, or where no answer came.

The queue that each was to go to is read from where it could lie earliest; what is not found there is looked for by its
key, too. Only what both do not have is not there, and may be sent again. The queue is still the one that was written to
where the message before the earliest place is the one that was there when the send was written down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext_noop

from mqadmin.observing.gateway import Failures, Gateway, QueuePlace
from mqadmin.replays.models import ReplayEntry, ReplayJob
from mqadmin.replays.outgoing import lookup_key
from mqadmin.replays.states import Target
from remoting.wire.names import dlq_topic
from remoting.wire.properties import Property
from remoting.wire.stored_message import StoredMessage

ANEW = gettext_noop("the topic was deleted and made anew meanwhile")


class Found(StrEnum):
    """What was found out. NOT_YET: the broker could not be asked; NEVER: asking again will not help."""

    THERE = "there"
    NOT_THERE = "not_there"
    NOT_YET = "not_yet"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Finding:
    state: Found
    words: str = ""
    message: StoredMessage | None = None


@dataclass(frozen=True, slots=True)
class _Queue:
    """Where the earliest of the messages could lie, and by queue offset the broker's ids of messages before them."""

    earliest: QueuePlace
    before: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Scan:
    """`found` by entry; a queue that was not read to its end has in `hole` why, and whether that may change."""

    found: dict[int, StoredMessage]
    hole: Finding | None = None


async def look_for(
    gateway: Gateway,
    job: ReplayJob,
    entries: Sequence[ReplayEntry],
    masters: Mapping[str, str],
    *,
    scan_max: int,
    is_over: Callable[[], bool],
) -> dict[int, Finding]:
    """Returns by primary key what became of each entry. `masters`: addresses by broker name.

    A broker that did not answer is not asked again. Once `is_over`, further queues are left out: for the next time.
    """
    by_queue: defaultdict[tuple[str, str, int], list[ReplayEntry]] = defaultdict(list)
    for entry in entries:
        by_queue[entry.broker_name, entry.topic, entry.queue_id or 0].append(entry)
    findings: dict[int, Finding] = {}
    silent: dict[str, Finding] = {}
    for (broker_name, topic, queue_id), there in by_queue.items():
        if findings and is_over():
            break
        address = masters.get(broker_name)
        if address in silent:
            findings |= dict.fromkeys((entry.pk for entry in there), silent[address])
            continue
        if address is None:
            gone = Finding(Found.NOT_YET, f"broker {broker_name} is not known any more")
            findings |= dict.fromkeys((entry.pk for entry in there), gone)
            continue
        queue = _Queue(
            QueuePlace(address, topic, queue_id, min(entry.queue_offset or 0 for entry in there)),
            {entry.queue_offset - 1: entry.before_id for entry in there if entry.queue_offset and entry.before_id},
        )
        scan = await _scan(gateway, job.token, queue, scan_max)
        if scan.hole is not None and scan.hole.state == Found.NOT_YET:
            silent[address] = scan.hole
        failures = Failures()
        for entry in there:
            found = scan.found.get(entry.pk)
            if found is not None:
                findings[entry.pk] = Finding(Found.THERE, message=found)
            elif address in silent:
                findings[entry.pk] = silent[address]
            else:
                findings[entry.pk] = await _by_key(gateway, job, entry, address, scan.hole, failures)
    return findings


async def _scan(gateway: Gateway, token: str, queue: _Queue, scan_max: int) -> _Scan:
    found: dict[int, StoredMessage] = {}
    unseen, count = dict(queue.before), 0
    place = queue.earliest._replace(queue_offset=min((queue.earliest.queue_offset, *unseen)))
    is_anew = False
    while True:
        failures = Failures()
        reading = (await gateway.messages.read([place], failures)).get(place)
        if reading is None:
            return _Scan(found, Finding(Found.NOT_YET, failures.reasons[place.address]))
        if reading.refusal:
            return _Scan(found, Finding(Found.NEVER, reading.refusal))
        found |= _of_replay(token, reading.messages)
        count += len(reading.messages)
        is_anew |= any(
            before_id != one.offset_message_id
            for one in reading.messages
            if (before_id := unseen.pop(one.queue_offset, None))
        )
        if reading.end_offset < queue.earliest.queue_offset:
            return _Scan(found, Finding(Found.NEVER, ANEW))
        if reading.begin_offset > place.queue_offset:
            return _Scan(found, Finding(Found.NEVER, gettext_noop("the broker has removed what came there meanwhile")))
        if reading.next_offset >= reading.end_offset:
            return _Scan(found, Finding(Found.NEVER, ANEW) if is_anew or unseen else None)
        if count >= scan_max or reading.next_offset <= place.queue_offset:
            return _Scan(found, Finding(Found.NEVER, gettext_noop("too many messages came behind it to read them all")))
        place = place._replace(queue_offset=reading.next_offset)


def _of_replay(token: str, messages: Iterable[StoredMessage]) -> dict[int, StoredMessage]:
    ours = ((one, one.properties) for one in messages)
    return {
        int(properties[Property.REPLAY_ENTRY]): one
        for one, properties in ours
        if properties.get(Property.REPLAY_JOB) == token and properties.get(Property.REPLAY_ENTRY, "").isdecimal()
    }


async def _by_key(
    gateway: Gateway, job: ReplayJob, entry: ReplayEntry, address: str, hole: Finding | None, failures: Failures
) -> Finding:
    """A retry topic may have passed it on to the dead letters at once. `failures`: those of the queue's entries."""
    topics = [entry.topic, *([dlq_topic(job.group_name)] if job.target == Target.GROUP else [])]
    found = await gateway.sending.by_key(address, topics, lookup_key(job.token, entry.pk), failures)
    if found:
        return Finding(Found.THERE, message=found[0])
    if failures.reasons:
        return Finding(Found.NOT_YET, failures.reasons[address])
    return hole or Finding(Found.NOT_THERE)
