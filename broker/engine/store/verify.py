"""Verifies a store: the CRC of every record, and every consume-queue entry against its record.

For `manage.py store check` and for tests. It reads the whole log, so it is no part of a start.
"""

from __future__ import annotations

from broker.engine.store.commit_log import CommitLog
from broker.engine.store.consume_queue import ConsumeQueue
from broker.engine.store.indexer import Indexer, has_queue_entry
from broker.engine.store.layout import HOLE_BYTES, QUEUE_ENTRY, RecordFields
from broker.engine.store.log_scan import LogEnd, scan_log
from broker.engine.store.queue_table import QueueTable
from broker.engine.store.values import Damage, VerifyReport
from remoting.wire.names import SCHEDULE_TOPIC, TIMER_TOPIC

# Problems and damages beyond this number are not listed: such a store is to be restored from a copy.
_PROBLEMS_MAX = 1000


class _Findings:
    """The results so far; `seen` counts the messages with a right entry, by topic and queue id."""

    def __init__(self) -> None:
        self.record_count = 0
        self.damages: list[Damage] = []
        self.problems: list[str] = []
        self.seen: dict[tuple[str, int], int] = {}

    def problem(self, text: str) -> None:
        if len(self.problems) < _PROBLEMS_MAX:
            self.problems.append(text)


def verify_store(log: CommitLog, queues: QueueTable, indexer: Indexer) -> VerifyReport:
    """Verifies the store without changing it; takes about a second per 200,000 records. Raises OSError."""
    findings = _Findings()
    for found in scan_log(log, log.min_offset):
        match found:
            case RecordFields():
                findings.record_count += 1
                _check_entry(found, queues, indexer, findings)
            case Damage():
                findings.damages.append(found)
            case LogEnd():
                _check_end(found, log, findings)
    for queue in queues:
        _check_queue(queue, log, findings)
    return VerifyReport(
        record_count=findings.record_count,
        byte_count=log.end - log.min_offset,
        damages=tuple(findings.damages[:_PROBLEMS_MAX]),
        problems=tuple(findings.problems),
    )


def _check_entry(fields: RecordFields, queues: QueueTable, indexer: Indexer, findings: _Findings) -> None:
    if not has_queue_entry(fields.sys_flag) or fields.commit_log_offset < queues.deleted_until(fields.topic):
        return
    place = f"{fields.topic}/{fields.queue_id}@{fields.queue_offset}"
    queue = queues.get(fields.topic, fields.queue_id)
    entry = queue.entry(fields.queue_offset) if queue is not None else None
    if entry is None or entry[:2] != (fields.commit_log_offset, fields.total_bytes):
        findings.problem(f"{place}: its queue entry is {entry}, the record is at {fields.commit_log_offset}")
        return
    findings.seen[fields.topic, fields.queue_id] = findings.seen.get((fields.topic, fields.queue_id), 0) + 1
    # A delayed message's due time may have been computed some ms before its store timestamp was set.
    if fields.topic not in (SCHEDULE_TOPIC, TIMER_TOPIC) and entry[2] != indexer.derived_tags_code(fields):
        findings.problem(f"{place}: its queue entry has tags code {entry[2]}")


def _check_end(end: LogEnd, log: CommitLog, findings: _Findings) -> None:
    if end.torn_bytes:
        findings.problem(f"{end.torn_bytes} bytes of garbage behind the log's end at {end.commit_log_offset}")
    if end.commit_log_offset != log.end:
        findings.problem(f"the last sound record ends at {end.commit_log_offset}, the log at {log.end}")


def _check_queue(queue: ConsumeQueue, log: CommitLog, findings: _Findings) -> None:
    position = queue.min_offset(log.min_offset)
    live = 0
    while position < queue.max_offset:
        entries = queue.entries(position, 100_000)
        live += sum(1 for _, size, _ in QUEUE_ENTRY.iter_unpack(entries) if size != HOLE_BYTES)
        position += len(entries) // QUEUE_ENTRY.size
    seen = findings.seen.get((queue.topic, queue.queue_id), 0)
    if live != seen:
        findings.problem(f"{queue.topic}/{queue.queue_id}: {live} entries for {seen} messages")
