"""Drives a replay for one step: writes its ledger, claims, sends, writes outcomes, looks for what has none.

The order makes it safe against a crash at any moment: an entry is written as being sent, with its queue, before it is
sent; its outcome is written afterwards. What a crash leaves as being sent is looked for on the broker when every send
of the dead process is over, and sent again only if it is not there. Only the holder of the lease writes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from mqadmin.clusters.bulk import Change, write
from mqadmin.deadletters.models import DeadLetter
from mqadmin.observing.gateway import Fate, Gateway, GatewayError, SendOutcome
from mqadmin.replay_files.models import FileMessage
from mqadmin.replays import approval, freezing, ledger
from mqadmin.replays.contents import body_bytes, contents_of, has_file_body
from mqadmin.replays.limits import LIMITS, ReplayLimits
from mqadmin.replays.models import WORDS_CHARS_MAX, ReplayEntry, ReplayJob
from mqadmin.replays.outgoing import NotToBeSent, destination
from mqadmin.replays.pacing import Pace
from mqadmin.replays.routing import Routes
from mqadmin.replays.sending import Batch, Claimed, Sender
from mqadmin.replays.settling import Finding, Found, look_for
from mqadmin.replays.sight import is_hidden
from mqadmin.replays.signals import say_moved
from mqadmin.replays.states import EntryState, JobState, Target, Verb, is_too_bad, next_state

# Entries of a cancelled replay that are skipped in one transaction.
SKIP_CHUNK = 1000
LEFT_FOR_SENDING = ("file_message__body", "file_message__properties")
CANCELLED = gettext_noop("the replay was cancelled before")
UNAPPROVED = gettext_noop("it was mended after the replay was approved: replay it anew")
HIDDEN = gettext_noop("its body is hidden from who started the replay")
REMOVED = gettext_noop("the index has removed the dead letter meanwhile")
FILE_REMOVED = gettext_noop("the file that it is in was removed meanwhile")
LEFT_OUT = gettext_noop(
    "%(n)s of the %(selected)s selected ones were archived or removed before the ledger was written: they are not in it"
)
NEVER_STORED = gettext_noop("it was tried as often as a replay tries, and never stored")
NOWHERE = gettext_noop("no broker takes messages for topic %(topic)s: it is gone, or may not be written to")
# By the state of another replay's entry of the same message: why this one's is skipped, or waits.
ELSEWHERE: Mapping[EntryState, str] = {
    EntryState.SENT: gettext_noop("replay %(number)s has sent it"),
    EntryState.SENDING: gettext_noop("replay %(number)s is sending it"),
    EntryState.UNKNOWN: gettext_noop("replay %(number)s may have sent it: unknown"),
}
_CERTAINTY = (EntryState.UNKNOWN, EntryState.SENDING, EntryState.SENT)


class _Elsewhere(NamedTuple):
    """What another replay does with the same message."""

    job_id: int
    state: EntryState


class Left(StrEnum):
    """What a step leaves: NOW, more to do at once; LATER, something that must wait; NOTHING."""

    NOW = "now"
    LATER = "later"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Driven:
    """What a step leaves, and for how many seconds it may have sent and has not: the next one catches up."""

    left: Left
    behind_s: float = 0.0


def drive_step(job_id: int, limits: ReplayLimits = LIMITS, *, behind_s: float = 0.0) -> Driven:
    """Drives the replay for `limits.step_s` at most; does nothing where another process drives it.

    `behind_s`: what the step before left, and the time since then.
    """
    token = ledger.take(job_id, timezone.now(), lease_s=limits.lease_s)
    if token is None:
        return Driven(Left.NOTHING)
    try:
        with asyncio.Runner() as runner:
            return _Step(job_id, token, limits, runner, behind_s).run()
    except ledger.LeaseLost:
        return Driven(Left.NOTHING)
    finally:
        ledger.release(job_id, token, timezone.now())


class _Step:
    """One lease, one event loop, one gateway."""

    def __init__(self, job_id: int, token: str, limits: ReplayLimits, runner: asyncio.Runner, behind_s: float) -> None:
        self._job_id = job_id
        self._token = token
        self._limits = limits
        self._runner = runner
        self._began_at = timezone.now()
        self._routes = Routes()
        self._job = self._read_job()
        self._pace = Pace(self._job.rate_per_s, time.monotonic() - behind_s)
        self._gateway = Gateway(self._job.cluster.namesrv)
        self._held = partial(ledger.held, job_id, token, lease_s=limits.lease_s)

    def run(self) -> Driven:
        began_s = time.monotonic()
        try:
            while (left := self._round()) == Left.NOW:
                now_s = time.monotonic()
                if self._is_over(now_s - began_s, behind_s := self._pace.behind_s(now_s)):
                    return Driven(left, behind_s)
            return Driven(left)
        finally:
            self._runner.run(self._gateway.__aexit__(None, None, None))

    def _is_over(self, taken_s: float, behind_s: float) -> bool:
        """One that is behind by a batch has not to wait for it: it goes on until the end of its turn."""
        limits = self._limits
        if taken_s >= limits.step_s:
            return True
        has_turn = taken_s < limits.turn_s and behind_s >= limits.batch_s
        return not has_turn and ledger.others_wait(self._job_id, timezone.now())

    def _round(self) -> Left:
        """Does one bounded piece of work."""
        job = self._job = self._read_job()
        # Before a broker is asked, which may not answer.
        if job.state == JobState.CANCELLED and job.waiting_count:
            return self._skip_rest()
        settled = self._settle() if job.sending_count else 0
        if job.state != JobState.RUNNING:
            return self._waits_for_settling(settled)
        if job.frozen_at is None:
            freezing.freeze(job, self._token)
            self._say_left_out()
            say_moved(job)
            return Left.NOW
        if self._stops():
            return Left.NOW
        if job.waiting_count == 0 and not settled:
            return self._finish()
        done = self._send_some()
        return Left.NOW if settled or done else Left.LATER

    def _waits_for_settling(self, settled: int) -> Left:
        if settled:
            return Left.NOW
        return Left.LATER if self._job.sending_count else Left.NOTHING

    def _read_job(self) -> ReplayJob:
        return ReplayJob.objects.select_related("cluster").get(pk=self._job_id)

    # the job

    def _stops(self) -> bool:
        """Stops the replay where too many of those that were sent have failed again."""
        job, limits = self._job, self._limits
        sent = job.sent_count - job.judged_sent_count
        failed = job.failed_count - job.judged_failed_count
        if not is_too_bad(sent, failed, stop_percent=job.stop_percent, judged_from=limits.judged_from):
            return False
        words = gettext_noop("%(dead)s of %(sent)s sent messages failed again") % {"dead": failed, "sent": sent}
        return self._change_state(Verb.STOP, problem=words)

    def _finish(self) -> Left:
        if self._job.sending_count:
            return Left.LATER
        self._change_state(Verb.FINISH, problem="", ended_at=timezone.now())
        return Left.NOTHING

    def _say_left_out(self) -> None:
        """Says how many the selection lost between the start and the last of the ledger."""
        job = self._job
        if job.frozen_at is None or job.selected_count is None:
            return
        total = ReplayJob.objects.values_list("total_count", flat=True).get(pk=self._job_id)
        if (lost := job.selected_count - total) > 0:
            with self._held():
                words = LEFT_OUT % {"n": lost, "selected": job.selected_count}
                ReplayJob.objects.filter(pk=self._job_id).update(note=words)

    def _change_state(self, verb: Verb, **values: Any) -> bool:
        """Changes it unless a person has changed it meanwhile."""
        state = JobState(self._job.state)
        to = next_state(verb, state)
        assert to is not None, f"{verb} in {state}"
        with self._held():
            changed = ReplayJob.objects.filter(pk=self._job_id, state=state).update(state=to, **values)
            say_moved(self._job)
        return bool(changed)

    def _say(self, problem: str) -> None:
        if problem != self._job.problem:
            with self._held():
                ReplayJob.objects.filter(pk=self._job_id).update(problem=problem)
                say_moved(self._job)

    def _skip_rest(self) -> Left:
        with self._held():
            rest = ReplayEntry.objects.filter(job=self._job_id, state=EntryState.WAITING)[:SKIP_CHUNK]
            ledger.move(self._job_id, rest, EntryState.SKIPPED, CANCELLED)
            say_moved(self._job)
        return Left.NOW

    # sending

    def _send_some(self) -> bool:
        """Claims and sends a batch; returns whether there was anything to do."""
        job, limits = self._job, self._limits
        self._pace.change(job.rate_per_s, time.monotonic())
        count = max(1, min(limits.batch, round(job.rate_per_s * limits.batch_s)))
        # What this step has put off is left to the next one: each step looks at an entry that must wait once.
        due = Q(due_at=None) | Q(due_at__lte=self._began_at)
        waiting = ReplayEntry.objects.filter(due, job=job, state=EntryState.WAITING)
        # Bodies are read when they are sent: those of a batch have its limit.
        light = waiting.select_related("dead_letter", "file_message").defer(*LEFT_FOR_SENDING)
        entries = _light(list(light.order_by("-pk")[:count]), limits.batch_bytes)
        if not entries:
            return False
        topics = {place for entry in entries if (place := self._topic_of(entry))}
        self._runner.run(self._routes.learn(self._gateway, sorted(topics)))
        claimed_s, claimed_at = time.monotonic(), timezone.now()
        claimed = self._claim(entries)
        if not claimed:
            return True
        batch = Batch(claimed, contents_of([one.entry for one in claimed]), claimed_s, claimed_at)
        masters = dict(job.cluster.brokers.filter(broker_id=0).values_list("name", "address"))
        sender = Sender(self._gateway, job, self._routes, masters, limits.send_within_s)
        outcomes = self._runner.run(sender.send(batch, self._pace))
        self._write(claimed, outcomes)
        return True

    def _topic_of(self, entry: ReplayEntry) -> str:
        try:
            return self._destination(entry)
        except NotToBeSent:
            return ""

    def _destination(self, entry: ReplayEntry) -> str:
        job = self._job
        return destination(Target(job.target), job.target_topic, group=job.group_name, origin_topic=entry.origin_topic)

    def _claim(self, entries: Sequence[ReplayEntry]) -> list[Claimed]:
        """Writes what is going to be sent, and where; the others get their outcome, or wait for a broker."""
        now = timezone.now()
        claimed: list[Claimed] = []
        with self._held():
            elsewhere = self._replayed_elsewhere(entries)
            own = [one.dead_letter_id for one in entries if not has_file_body(one)]
            unapproved = approval.mended_since(self._job, own)
            for entry in entries:
                if entry.line is not None and entry.file_message is None:
                    ledger.move(self._job_id, [entry], EntryState.SKIPPED, FILE_REMOVED)
                elif entry.dead_letter is None and not has_file_body(entry):
                    ledger.move(self._job_id, [entry], EntryState.SKIPPED, REMOVED)
                elif is_hidden(self._job, entry):
                    ledger.move(self._job_id, [entry], EntryState.SKIPPED, HIDDEN)
                elif entry.dead_letter_id in unapproved and not has_file_body(entry):
                    ledger.move(self._job_id, [entry], EntryState.REFUSED, UNAPPROVED)
                elif other := elsewhere.get(entry.pk):
                    words = ELSEWHERE[other.state] % {"number": other.job_id}
                    if other.state == EntryState.SENDING:
                        self._wait(entry, words, now, is_attempt=False)
                    else:
                        ledger.move(self._job_id, [entry], EntryState.SKIPPED, words)
                else:
                    claimed += self._claim_one(entry, now)
            ledger.save(
                self._job_id, [(one.entry, EntryState.SENDING, self._claim_values(one, now)) for one in claimed]
            )
        self._say(self._why_waiting(entries) if not claimed else "")
        return claimed

    def _claim_one(self, entry: ReplayEntry, now: datetime) -> list[Claimed]:
        try:
            topic = self._destination(entry)
        except NotToBeSent as error:
            ledger.move(self._job_id, [entry], EntryState.REFUSED, str(error))
            return []
        dead = entry.dead_letter
        queue = self._routes.pick(topic, dead.broker_name if dead and self._job.target == Target.GROUP else "")
        if queue is not None:
            return [Claimed(entry, topic, queue)]
        why = self._routes.why_none(topic)
        words = why or NOWHERE % {"topic": topic}
        # A broker that starts anew is missing from the name server for a moment, too.
        self._wait(entry, words, now, is_attempt=not why)
        return []

    def _claim_values(self, one: Claimed, now: datetime) -> dict[str, object]:
        end = self._routes.ends[one.topic, one.queue]
        return {
            "words": "",
            "attempt_count": one.entry.attempt_count + 1,
            "claim_token": self._token,
            "claimed_at": now,
            "due_at": now + timedelta(seconds=self._limits.settle_after_s),
            "topic": one.topic,
            "broker_name": one.queue.broker_name,
            "queue_id": one.queue.queue_id,
            "queue_offset": end.queue_offset,
            "before_id": end.before_id,
        }

    def _why_waiting(self, entries: Iterable[ReplayEntry]) -> str:
        return next((entry.words for entry in entries if entry.state == EntryState.WAITING), "")

    def _replayed_elsewhere(self, entries: Iterable[ReplayEntry]) -> dict[int, _Elsewhere]:
        """Returns by entry which other replay has sent it, is sending it, or may have. Two never both claim one.

        A line of a file is the same as the dead letter that it is, and else as itself alone.
        """
        if not self._job.skips_replayed:
            return {}
        dead = {entry.dead_letter_id: entry.pk for entry in entries if entry.dead_letter_id is not None}
        lines = {
            entry.file_message_id: entry.pk
            for entry in entries
            if entry.dead_letter_id is None and entry.file_message_id is not None
        }
        list(DeadLetter.objects.select_for_update().filter(pk__in=dead).order_by("pk").values_list("pk"))
        list(FileMessage.objects.select_for_update().filter(pk__in=lines).order_by("pk").values_list("pk"))
        sent = ReplayEntry.objects.filter(state__in=list(ELSEWHERE)).exclude(job=self._job_id)
        found: dict[int, _Elsewhere] = {}
        for own, name in ((dead, "dead_letter_id"), (lines, "file_message_id")):
            if own:
                rows = sent.filter(**{f"{name}__in": own}).values_list(name, "job_id", "state")
                others = [(own[one], _Elsewhere(job_id, EntryState(state))) for one, job_id, state in rows]
                # What is certain counts first: it is written last.
                found |= dict(sorted(others, key=lambda one: _CERTAINTY.index(one[1].state)))
        return found

    def _wait(self, entry: ReplayEntry, words: str, now: datetime, *, is_attempt: bool) -> None:
        """Leaves a waiting entry for later; refuses it after too many attempts."""
        count = entry.attempt_count + is_attempt
        if count >= self._limits.attempts_max:
            ledger.move(self._job_id, [entry], EntryState.REFUSED, words)
            return
        later = now + timedelta(seconds=self._limits.retry_after_s)
        entry.words = words[:WORDS_CHARS_MAX]
        write(ReplayEntry, [Change(entry.pk, {"words": entry.words, "attempt_count": count, "due_at": later})])

    def _write(self, claimed: Sequence[Claimed], outcomes: Mapping[int, SendOutcome]) -> None:
        now = timezone.now()
        with self._held():
            changes = [change for one in claimed if (change := self._change(one, outcomes[one.entry.pk], now))]
            ledger.save(self._job_id, changes)
            write(ReplayEntry, [Change(one.entry.pk, {"words": words}) for one, words in _lost(claimed, outcomes)])
            say_moved(self._job)

    def _change(
        self, one: Claimed, outcome: SendOutcome, now: datetime
    ) -> tuple[ReplayEntry, EntryState, dict[str, object]] | None:
        """Returns what the outcome makes of the entry; None leaves it being sent, to be looked for."""
        entry, words = one.entry, outcome.words
        if outcome.stored is not None:
            stored = outcome.stored
            place = {"new_id": stored.offset_message_id, "queue_offset": stored.queue_offset}
            return entry, EntryState.SENT, {"words": words, "sent_at": now, "due_at": None, **place}
        if outcome.fate == Fate.LOST:
            return None
        if outcome.fate == Fate.REFUSED or entry.attempt_count >= self._limits.attempts_max:
            return entry, EntryState.REFUSED, {"words": words}
        later = now + timedelta(seconds=self._limits.retry_after_s)
        attempts = entry.attempt_count - outcome.is_away
        return entry, EntryState.WAITING, {"words": words, "attempt_count": attempts, "due_at": later}

    # settling

    def _settle(self) -> int:
        """Looks for what has been without an outcome for long enough; returns how many have one now."""
        now = timezone.now()
        sending = ReplayEntry.objects.filter(job=self._job_id, state=EntryState.SENDING, due_at__lte=now)
        entries = list(sending.order_by("pk")[: self._limits.batch])
        if not entries:
            return 0
        # Looking takes a step, and two time-outs more at most: less than the lease.
        with self._held():
            pass
        findings = self._runner.run(self._look_for(entries))
        looked_for = [entry for entry in entries if entry.pk in findings]
        changes = [change for entry in looked_for if (change := self._settled(entry, findings[entry.pk], now))]
        with self._held():
            ledger.save(self._job_id, changes)
            open_ids = findings.keys() - {entry.pk for entry, _, _ in changes}
            later = now + timedelta(seconds=self._limits.retry_after_s)
            ReplayEntry.objects.filter(pk__in=open_ids).update(due_at=later)
            say_moved(self._job)
        return len(changes)

    async def _look_for(self, entries: Sequence[ReplayEntry]) -> dict[int, Finding]:
        try:
            masters = {one.name: one.address for one in await self._gateway.masters()}
        except GatewayError as error:
            return dict.fromkeys((entry.pk for entry in entries), Finding(Found.NOT_YET, str(error)))
        until_s = time.monotonic() + self._limits.step_s
        look = partial(
            look_for,
            self._gateway,
            self._job,
            masters=masters,
            scan_max=self._limits.scan_max,
            is_over=lambda: time.monotonic() >= until_s,
        )
        found = await look(entries)
        missing = [entry for entry in entries if entry.pk in found and found[entry.pk].state == Found.NOT_THERE]
        if not missing:
            return found
        await asyncio.sleep(self._limits.look_again_after_s)
        # Those that there is no time for are looked for anew.
        return {pk: one for pk, one in found.items() if one.state != Found.NOT_THERE} | await look(missing)

    def _settled(
        self, entry: ReplayEntry, finding: Finding, now: datetime
    ) -> tuple[ReplayEntry, EntryState, dict[str, object]] | None:
        """Returns what was found out; None where it is asked again later."""
        if finding.message is not None:
            message = finding.message
            place = {"new_id": message.offset_message_id, "queue_offset": message.queue_offset}
            return entry, EntryState.SENT, {"words": "", "sent_at": now, "due_at": None, **place}
        claimed_at = entry.claimed_at
        if finding.state == Found.NOT_THERE:
            if entry.attempt_count >= self._limits.attempts_max:
                return entry, EntryState.REFUSED, {"words": entry.words or NEVER_STORED, "due_at": None}
            return entry, EntryState.WAITING, {"words": entry.words, "due_at": None}
        is_given_up = claimed_at is None or (now - claimed_at).total_seconds() > self._limits.give_up_after_s
        if finding.state == Found.NEVER or is_given_up:
            return entry, EntryState.UNKNOWN, {"words": finding.words, "due_at": None}
        return None


def _lost(claimed: Iterable[Claimed], outcomes: Mapping[int, SendOutcome]) -> list[tuple[Claimed, str]]:
    """Returns what has no outcome, and why: it stands there until it is looked for."""
    found = ((one, outcomes[one.entry.pk]) for one in claimed)
    return [(one, outcome.words[:WORDS_CHARS_MAX]) for one, outcome in found if outcome.fate == Fate.LOST]


def _light(entries: Sequence[ReplayEntry], bytes_max: int) -> list[ReplayEntry]:
    """Returns the first of them whose bodies have so many bytes together at most; at least one."""
    count = sum(size <= bytes_max for size in accumulate(body_bytes(entry) for entry in entries))
    return list(entries[: max(1, count)])
