"""Reads a file as it comes and writes its messages: a chunk of lines at a time, so that its length costs no memory.

A line that is wrong is written with its reason, and the rest goes on; a file that is none, or is too large, is refused
as a whole, and leaves nothing. Who sends the same file again gets the one that is there.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from mqadmin.clusters.models import NAME_CHARS_MAX, Cluster
from mqadmin.replay_files import limits, records
from mqadmin.replay_files.cells import SEPARATORS, WrongRow, cells_of
from mqadmin.replay_files.lines import COLUMNS_MAX, Line, WrongLine, columns_of, read_json, read_row
from mqadmin.replay_files.models import PERSON_CHARS_MAX, PROBLEM_CHARS_MAX, FileMessage, ReplayFile
from mqadmin.replay_files.recognising import Identity, identity_of, known_to_index, message_of
from mqadmin.replay_files.records import Record

# Enough to tell what a file is.
HEAD_BYTES = 4096
REMOVE_BATCH = 500
_UTF8_MARK = b"\xef\xbb\xbf"
# First bytes of what is no text in UTF-8, and what to do.
_OTHERS = (
    (b"\xff\xfe", gettext_lazy("The file is UTF-16: save it as UTF-8.")),
    (b"\xfe\xff", gettext_lazy("The file is UTF-16: save it as UTF-8.")),
    (b"\x1f\x8b", gettext_lazy("The file is compressed: unpack it.")),
    (b"PK\x03\x04", gettext_lazy("The file is compressed, or a spreadsheet's own: unpack it, or save it as CSV.")),
    (b"[", gettext_lazy("The file is one JSON array: JSON Lines has one object a line.")),
)


class FileRefused(Exception):
    """The file as a whole is not taken; the text says why, in the language of whoever sends it."""


class FileTooLarge(FileRefused):
    """It has more bytes or lines than a file may have."""


# A line that was read, or what is wrong with it.
Read = tuple[Record, Line | WrongLine]


def store(cluster: Cluster, name: str, chunks: Iterable[bytes], *, by: str) -> tuple[ReplayFile, bool]:
    """Returns the file, and whether it is new. Raises FileRefused."""
    if ReplayFile.objects.filter(cluster=cluster).count() >= limits.FILES_MAX:
        words = _("Cluster %(cluster)s has %(n)d files that wait to be replayed: delete one first.")
        raise FileRefused(words % {"cluster": cluster.name, "n": limits.FILES_MAX})
    file = ReplayFile.objects.create(
        cluster=cluster,
        name=name.replace("\0", "")[-NAME_CHARS_MAX:],
        sent_by=by[:PERSON_CHARS_MAX],
        created_at=timezone.now(),
    )
    try:
        _read(file, chunks)
        with transaction.atomic():
            file.read_at = timezone.now()
            file.save()
    except IntegrityError:
        same = ReplayFile.objects.filter(cluster=cluster, digest=file.digest, read_at__isnull=False).first()
        remove(file)
        if same is None:
            raise
        return same, False
    except BaseException:
        remove(file)
        raise
    return file, True


def remove(file: ReplayFile) -> None:
    """Removes a file with its messages, few at a time; the ledgers of its replays stay."""
    while ids := list(FileMessage.objects.filter(file=file).values_list("pk", flat=True)[:REMOVE_BATCH]):
        FileMessage.objects.filter(pk__in=ids).delete()
    ReplayFile.objects.filter(pk=file.pk).delete()


@dataclass(slots=True)
class _Bytes:
    """Counts what passes. Raises FileTooLarge."""

    chunks: Iterable[bytes]
    count: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            self.count += len(chunk)
            if self.count > limits.FILE_BYTES_MAX:
                words = _("A file may have %(mib)d MiB: split it.")
                raise FileTooLarge(words % {"mib": limits.FILE_BYTES_MAX // 2**20})
            self.digest.update(chunk)
            yield chunk


def _read(file: ReplayFile, chunks: Iterable[bytes]) -> None:
    counted = _Bytes(chunks)
    seen: dict[Identity, int] = {}
    counts: Counter[bool] = Counter()
    for read in _chunked(_lines(file.cluster, iter(counted))):
        rows = list(_rows(file, read, seen))
        with transaction.atomic():
            FileMessage.objects.bulk_create(rows)
        counts.update(not row.problem for row in rows)
        if counts.total() > limits.LINES_MAX:
            raise FileTooLarge(_("A file may have %(n)d lines: split it.") % {"n": limits.LINES_MAX})
    if not counts:
        raise FileRefused(_("The file has no dead letter."))
    file.digest, file.byte_count = counted.digest.hexdigest(), counted.count
    file.message_count, file.wrong_count, file.line_count = counts[True], counts[False], counts.total()


def _lines(cluster: Cluster, chunks: Iterator[bytes]) -> Iterator[Read]:
    """Yields what each line says. Raises FileRefused where it is no file of dead letters."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= HEAD_BYTES:
            break
    head = head.removeprefix(_UTF8_MARK)
    start = head.lstrip()
    for first, words in _OTHERS:
        if start.startswith(first):
            raise FileRefused(str(words))
    content = chain([head], chunks)
    if start.startswith(b"{"):
        for record in records.lines(content, limits.LINE_BYTES_MAX):
            yield record, _said(record, lambda text: read_json(text, cluster.name))
        return
    rows = records.rows(content, limits.LINE_BYTES_MAX)
    separator, columns = _header(next(rows, None))
    for record in rows:
        yield record, _said(record, lambda text: read_row(text, separator, columns, cluster.name))


def _said(record: Record, read: Callable[[bytes], Line]) -> Line | WrongLine:
    if record.content is None and record.is_open:
        words = gettext_noop("its quotation mark is not closed; lines %(first)d to %(last)d were taken with it")
        return WrongLine(words % {"first": record.first, "last": record.last})
    if record.content is None:
        return WrongLine(gettext_noop("it is longer than %(mib)d MiB") % {"mib": limits.LINE_BYTES_MAX // 2**20})
    try:
        return read(record.content)
    except WrongLine as error:
        return error


def _header(record: Record | None) -> tuple[str, Mapping[str, int]]:
    """Returns how cells are separated, and where the fields stand. Raises FileRefused."""
    for separator in SEPARATORS:
        try:
            names = cells_of(((record and record.content) or b"").decode(), separator, COLUMNS_MAX)
        except (UnicodeDecodeError, WrongRow):
            continue
        if columns := columns_of(names):
            return separator, columns
    raise FileRefused(
        _(
            "It is neither JSON Lines nor CSV in UTF-8 whose first line names the columns; group and body are needed."
            " An export of dead letters is such a file."
        )
    )


def _chunked(read: Iterable[Read]) -> Iterator[list[Read]]:
    chunk: list[Read] = []
    size = 0
    for record, line in read:
        chunk.append((record, line))
        size += len(record.content or b"")
        if len(chunk) >= limits.CHUNK_LINES or size >= limits.CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _rows(file: ReplayFile, read: Sequence[Read], seen: dict[Identity, int]) -> Iterator[FileMessage]:
    known = known_to_index(file.cluster, [line for _, line in read if isinstance(line, Line)])
    for record, line in read:
        try:
            if isinstance(line, WrongLine):
                raise line
            row = message_of(line, known)
            _check_first(line, record, seen)
        except WrongLine as error:
            group = line.group if isinstance(line, Line) else error.group
            message_id = line.message_id if isinstance(line, Line) else error.message_id
            row = FileMessage(group_name=group, message_id=message_id, problem=str(error)[:PROBLEM_CHARS_MAX])
        row.file, row.line = file, record.first
        yield row


def _check_first(line: Line, record: Record, seen: dict[Identity, int]) -> None:
    """Raises WrongLine for a dead letter that an earlier line has: which of both is meant is not known."""
    if not line.message_id:
        return
    first = seen.setdefault(identity_of(line), record.first)
    if first != record.first:
        raise WrongLine(gettext_noop("line %(line)d is the same dead letter") % {"line": first})
