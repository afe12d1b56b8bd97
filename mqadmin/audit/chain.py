"""The chain of audit entries: each holds the hash of the one before, so that none can be changed or taken out unseen.

Owns numbering, hashing, cutting and checking. Writers stand in line: on PostgreSQL by an advisory lock until their
transaction ends, on SQLite because there is one writer at a time. Numbers have no gaps. Hashes are keyed with the
install's SECRET_KEY: whoever can write to the database alone cannot make a chain that passes; after a change of the key
SECRET_KEY_FALLBACKS must hold the old one. What no chain shows by itself is that its end was cut off: `check` takes a
head that was noted elsewhere (the command prints it) for that.

Expiry removes the oldest entries and leaves a cut: where they ended, with what hash, signed alike. A cut is what the
trigger that refuses deletions looks for (`triggers.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from mqadmin.audit import triggers
from mqadmin.audit.models import AuditCut, AuditEntry

# Any number that no other advisory lock of this database has; the letters "mqaudit" read as one.
_LOCK = 0x6D7161756469
_CHUNK = 1_000
_ENTRY_SALT = "mqadmin.audit.entry"
_CUT_SALT = "mqadmin.audit.cut"
# All that an entry says. Entries are checked by this list for ever: a column that comes later is to be hashed where it
# is not empty, so that older entries stay what they were.
HASHED = (
    "number",
    "previous_hash",
    "run",
    "at",
    "actor",
    "action",
    "cluster",
    "subject",
    "arguments",
    "before",
    "after",
    "items",
    "outcome",
    "reason",
    "undo",
    "way",
    "address",
    "user_agent",
    "via",
    "batch",
)
# Beyond it a JSON number may come back from a database as another one of the same size.
_INTEGER_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain. Number 0 and hash "": it has no entry yet."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `fault` is "" where all is well; else `broken` is the number of the first entry it names.

    `head` is the last entry that was checked; `is_whole`: no entry follows it.
    """

    head: Head
    checked_count: int
    cut: AuditCut | None
    broken: int | None = None
    fault: str = ""
    is_whole: bool = True


def append(entry: AuditEntry) -> AuditEntry:
    """Gives the entry its moment, number and hashes, and writes it. The writer's transaction holds the line."""
    with transaction.atomic():
        _stand_in_line()
        last = head()
        entry.at = timezone.now()
        entry.number, entry.previous_hash = last.number + 1, last.hash
        entry.hash = entry_hash(entry, settings.SECRET_KEY)
        entry.save(force_insert=True)
    return entry


def head() -> Head:
    """Returns the number and hash on which the next entry is built."""
    last = AuditEntry.objects.order_by("-number").values_list("number", "hash").first()
    if last is None:
        cut = AuditCut.objects.order_by("-through").first()
        return Head(0, "") if cut is None else Head(cut.through, cut.hash)
    return Head(*last)


def cut_before(moment: datetime) -> AuditCut | None:
    """Removes the entries from before the moment, and leaves a cut; None where there is none so old."""
    with transaction.atomic():
        _stand_in_line()
        # By number, so that the chain is cut at one place: numbers and moments rise together.
        kept = AuditEntry.objects.filter(at__gte=moment).order_by("number").first()
        old = AuditEntry.objects.filter(at__lt=moment)
        if kept is not None:
            old = old.filter(number__lt=kept.number)
        first, last = old.order_by("number").first(), old.order_by("-number").first()
        if first is None or last is None:
            return None
        cut = AuditCut(
            through=last.number,
            hash=last.hash,
            removed_count=last.number - first.number + 1,
            first_at=first.at,
            last_at=last.at,
            at=timezone.now(),
        )
        cut.signature = cut_signature(cut, settings.SECRET_KEY)
        cut.save(force_insert=True)
        AuditEntry.objects.filter(number__lte=cut.through).delete()
        return cut


def check(known: Head | None = None, *, after: Head | None = None, count_max: int | None = None) -> Report:
    """Goes through the chain: all of it, or at most `count_max` entries behind the head of an earlier check.

    `known` is a head that was noted before, and must be in it; so must `after` be.
    """
    cut = AuditCut.objects.order_by("-through").first()
    last = Head(0, "") if cut is None else Head(cut.through, cut.hash)
    count = 0

    def broken(number: int | None, fault: str) -> Report:
        return Report(last, count, cut, number, fault, is_whole=False)

    missing = triggers.missing(connection)
    if missing:
        words = _("The database does not refuse changes of the audit: %(names)s is missing. manage.py migrate adds it.")
        return broken(None, words % {"names": ", ".join(missing)})
    for one in AuditCut.objects.order_by("through"):
        if not _is_signed(one.signature, [cut_signature(one, key) for key in _keys()]):
            return broken(
                one.through, _("The cut after entry %(number)d is not signed by us.") % {"number": one.through}
            )
    entries = AuditEntry.objects.order_by("number")
    if after is not None and after.number >= last.number:
        if fault := _fault_of_start(after, last):
            return broken(after.number, fault)
        last = after
        entries = entries.filter(number__gt=last.number)
    for entry in entries[:count_max].iterator(_CHUNK):
        if fault := _fault(entry, last):
            return broken(entry.number, fault)
        count += 1
        last = Head(entry.number, entry.hash)
        if known is not None and known.number == last.number and known.hash != last.hash:
            return broken(last.number, _another(last.number))
    if known is not None and known.number > last.number:
        words = _("Entry %(number)d was noted, and the chain ends at %(last)d: its end was cut off.")
        return broken(last.number + 1, words % {"number": known.number, "last": last.number})
    is_whole = count != count_max or not AuditEntry.objects.filter(number__gt=last.number).exists()
    return Report(last, count, cut, is_whole=is_whole)


def entry_hash(entry: AuditEntry, key: str) -> str:
    """Returns the keyed hash of an entry and of the one before it, as hexadecimal digits."""
    said = {name: getattr(entry, name) for name in HASHED}
    return _keyed(_ENTRY_SALT, said, key)


def cut_signature(cut: AuditCut, key: str) -> str:
    """Returns the signature of a cut, as hexadecimal digits."""
    said = {name: getattr(cut, name) for name in ("through", "hash", "removed_count", "first_at", "last_at", "at")}
    return _keyed(_CUT_SALT, said, key)


def _fault(entry: AuditEntry, last: Head) -> str:
    if entry.number != last.number + 1:
        words = _("After entry %(last)d comes %(number)d: what was between them was taken out.")
        return words % {"last": last.number, "number": entry.number}
    if entry.previous_hash != last.hash:
        return _("Entry %(number)d follows another entry than the one before it now.") % {"number": entry.number}
    if not _is_signed(entry.hash, [entry_hash(entry, key) for key in _keys()]):
        return _("Entry %(number)d does not say what it said when it was written.") % {"number": entry.number}
    return ""


def _fault_of_start(start: Head, oldest: Head) -> str:
    """Returns the fault of a head to begin behind; `oldest` is where the chain itself begins."""
    if start.number == oldest.number:
        return "" if start.hash == oldest.hash else _another(start.number)
    found = AuditEntry.objects.filter(number=start.number).values_list("hash", flat=True).first()
    if found is None:
        return _("Entry %(number)d was noted, and is not there.") % {"number": start.number}
    return "" if found == start.hash else _another(start.number)


def _another(number: int) -> str:
    return _("Entry %(number)d is another one than was noted.") % {"number": number}


def _keys() -> list[str]:
    return [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]


def _is_signed(signature: str, valid: Sequence[str]) -> bool:
    return any(constant_time_compare(signature, one) for one in valid)


def _keyed(salt: str, said: dict[str, Any], key: str) -> str:
    text = json.dumps(_canonical(said), sort_keys=True, separators=(",", ":"))
    return salted_hmac(salt, text, secret=key, algorithm="sha256").hexdigest()


def _canonical(value: Any) -> Any:
    """Returns the value as every database gives it back: PostgreSQL writes 1e16 as a whole number."""
    match value:
        case dict():
            return {str(name): _canonical(one) for name, one in value.items()}
        case list() | tuple():
            return [_canonical(one) for one in value]
        case bool() | None:
            return value
        case int() | float():
            is_whole = value == value // 1 and abs(value) <= _INTEGER_MAX
            return int(value) if is_whole else repr(float(value))
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case _:
            return str(value)


def _stand_in_line() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    """Yields each entry as one line of JSON, as it is exported: all that it says, with its place in the chain."""
    for entry in entries:
        yield json.dumps(as_json(entry), ensure_ascii=False, separators=(",", ":")) + "\n"


def as_json(entry: AuditEntry) -> dict[str, Any]:
    """Returns an entry as plain JSON; moments as ISO 8601 in UTC."""
    said = {name: getattr(entry, name) for name in (*HASHED, "hash")}
    return {
        **said,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "run": str(entry.run),
        "batch": str(entry.batch) if entry.batch else None,
    }
