"""Deletes a file that was sent to be replayed; the ledgers of its replays stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import IdField
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.replay_files.models import ReplayFile
from mqadmin.replay_files.storing import remove
from mqadmin.replays.selectors import open_of_file


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteReplayFile:
    file: Annotated[int, IdField(label=gettext_lazy("File"))]


def preview(cluster: Cluster, arguments: DeleteReplayFile) -> Preview[ReplayFile]:
    """Raises ActionRefused where there is no such file, or a replay of it has not ended."""
    file = ReplayFile.objects.filter(cluster=cluster, pk=arguments.file).first()
    if file is None:
        raise ActionRefused(_("This cluster has no file of this number; it may have been removed for its age."))
    if job := open_of_file(cluster, file.pk):
        words = _("Replay %(number)d of this file has not ended: cancel it first.")
        raise ActionRefused(words % {"number": job.pk})
    before = {"file": f"{file.name}, sha256 {file.digest}", "lines": file.line_count}
    return Preview((Change("", before, {}),), file)


def carry_out(_cluster: Cluster, _arguments: DeleteReplayFile, preview: Preview[ReplayFile]) -> Iterator[ItemOutcome]:
    """Removes the file and its messages."""
    (change,) = preview.changes
    remove(preview.plan)
    yield change.done()


DECLARATION: Action[DeleteReplayFile, ReplayFile] = Action(
    name="delete_replay_file",
    title=gettext_lazy("Delete a file"),
    permission="mq_replays.add_replayjob",
    arguments=DeleteReplayFile,
    subject="file",
    preview=preview,
    carry_out=carry_out,
)
