"""What is sent for an entry of a ledger: what its file has, else the dead letter's own."""

from __future__ import annotations

from collections.abc import Sequence

from mqadmin.deadletters.content import Content, kept_contents
from mqadmin.replay_files.models import FileMessage
from mqadmin.replays.models import ReplayEntry


def has_file_body(entry: ReplayEntry) -> bool:
    """Returns whether its file has what is sent; else the index or a broker has it."""
    return entry.file_message is not None and entry.file_message.has_body


def body_bytes(entry: ReplayEntry) -> int:
    """Returns how long the body is, as far as that is known."""
    if entry.file_message is not None and entry.file_message.has_body:
        return entry.file_message.body_bytes
    return entry.dead_letter.body_bytes if entry.dead_letter is not None else 0


def contents_of(entries: Sequence[ReplayEntry]) -> dict[int, Content]:
    """Returns the contents that the database holds, by entry; what is missing is on a broker, if anywhere.

    Of a line whose content is not known to be the sender's, another message is made.
    """
    of_files = {file.pk: entry.pk for entry in entries if (file := entry.file_message) and file.has_body}
    found = {
        of_files[row.pk]: Content(bytes(row.body or b""), row.properties, is_mended=row.is_changed)
        for row in FileMessage.objects.filter(pk__in=of_files)
    }
    of_index = {dead: entry.pk for entry in entries if (dead := entry.dead_letter_id) and not has_file_body(entry)}
    kept = kept_contents(of_index)
    return found | {of_index[dead_letter_id]: content for dead_letter_id, content in kept.items()}
