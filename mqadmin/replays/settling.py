"""Finds out what became of messages whose send has no outcome: after a crash, or where no answer came.

The queue that each was to go to is read from where it could lie earliest; what is not found there is looked for by its
key, too. Only what both do not have is not there, and may be sent again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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


class Verdict(StrEnum):
    """What was found out. NOT_YET: the broker could not be asked; NEVER: asking again will not help."""

    THERE = "there"
    NOT_THERE = "not_there"
    NOT_YET = "not_yet"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Finding:
    verdict: Verdict
    words: str = ""
    message: StoredMessage | None = None


@dataclass(frozen=True, slots=True)
class _Scan:
    """`found` by entry; a queue that was not read to its end has in `hole` why, and whether that may change."""

    found: dict[int, StoredMessage]
    hole: Finding | None = None


async def look_for(
    gateway: Gateway, job: ReplayJob, entries: Sequence[ReplayEntry], masters: Mapping[str, str], *, scan_max: int
) -> dict[int, Finding]:
    """Returns by primary key what became of each entry. `masters`: addresses by broker name."""
    by_queue: defaultdict[tuple[str, str, int], list[ReplayEntry]] = defaultdict(list)
    for entry in entries:
        by_queue[entry.broker_name, entry.topic, entry.queue_id or 0].append(entry)
    findings: dict[int, Finding] = {}
    for (broker_name, topic, queue_id), there in by_queue.items():
        address = masters.get(broker_name)
        if address is None:
            gone = Finding(Verdict.NOT_YET, f"broker {broker_name} is not known any more")
            findings |= dict.fromkeys((entry.pk for entry in there), gone)
            continue
        start = min(entry.queue_offset or 0 for entry in there)
        scan = await _scan(gateway, job.token, QueuePlace(address, topic, queue_id, start), scan_max)
        for entry in there:
            found = scan.found.get(entry.pk)
            findings[entry.pk] = (
                Finding(Verdict.THERE, message=found)
                if found is not None
                else await _by_key(gateway, job, entry, address, scan.hole)
            )
    return findings


async def _scan(gateway: Gateway, token: str, place: QueuePlace, scan_max: int) -> _Scan:
    found: dict[int, StoredMessage] = {}
    start, count = place.queue_offset, 0
    while True:
        failures = Failures()
        reading = (await gateway.messages.read([place], failures)).get(place)
        if reading is None:
            return _Scan(found, Finding(Verdict.NOT_YET, failures.reasons[place.address]))
        if reading.refusal:
            return _Scan(found, Finding(Verdict.NEVER, reading.refusal))
        found |= _of_replay(token, reading.messages)
        count += len(reading.messages)
        if reading.end_offset < start:
            return _Scan(found, Finding(Verdict.NEVER, gettext_noop("the topic was deleted and made anew meanwhile")))
        if reading.next_offset >= reading.end_offset:
            return _Scan(found)
        if count >= scan_max or reading.next_offset <= place.queue_offset:
            return _Scan(
                found, Finding(Verdict.NEVER, gettext_noop("too many messages came behind it to read them all"))
            )
        place = place._replace(queue_offset=reading.next_offset)


def _of_replay(token: str, messages: Iterable[StoredMessage]) -> dict[int, StoredMessage]:
    ours = ((one, one.properties) for one in messages)
    return {
        int(properties[Property.REPLAY_ENTRY]): one
        for one, properties in ours
        if properties.get(Property.REPLAY_JOB) == token and properties.get(Property.REPLAY_ENTRY, "").isdecimal()
    }


async def _by_key(gateway: Gateway, job: ReplayJob, entry: ReplayEntry, address: str, hole: Finding | None) -> Finding:
    """A retry topic may have passed it on to the dead letters at once."""
    topics = [entry.topic, *([dlq_topic(job.group_name)] if job.target == Target.GROUP else [])]
    failures = Failures()
    found = await gateway.sending.by_key(address, topics, lookup_key(job.token, entry.pk), failures)
    if found:
        return Finding(Verdict.THERE, message=found[0])
    if failures.reasons:
        return Finding(Verdict.NOT_YET, failures.reasons[address])
    return hole or Finding(Verdict.NOT_THERE)
