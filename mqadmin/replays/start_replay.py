"""Starts a replay: dead letters of a group, or messages of a file, are sent again, as a job.

The preview is its dry run: how many, where to, a sample, and what to know before. Of two starts that say the same, one
job runs: the second one is told which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.arguments import CountField
from mqadmin.actions.declaration import Action, ActionRefused, Change, ItemOutcome, Preview
from mqadmin.clusters.models import Cluster
from mqadmin.deadletters.models import DeadLetter
from mqadmin.deadletters.selection import (
    ArchivedArgument,
    AttemptsArgument,
    BodyArgument,
    BornSinceArgument,
    BornUntilArgument,
    FailureArgument,
    IdsArgument,
    SinceArgument,
    TextArgument,
    UntilArgument,
    UserPropertyArgument,
    awaited,
    limiting,
    selection_of,
)
from mqadmin.groups.rules import GroupField
from mqadmin.people.current_caller import current_caller
from mqadmin.people.masking import is_masked
from mqadmin.people.words import YES_NO
from mqadmin.replay_files.models import ReplayFile
from mqadmin.replays import approval, tasks
from mqadmin.replays.dry_run import DryRun, dry_run
from mqadmin.replays.dry_run_warnings import warnings_of
from mqadmin.replays.models import ReplayJob
from mqadmin.replays.selection import identity_of
from mqadmin.replays.sight import has_hidden
from mqadmin.replays.signals import say_moved
from mqadmin.replays.states import ENDED, JobState, Target
from remoting.wire.errors import MessageError
from remoting.wire.limits import TOPIC_CHARS_MAX
from remoting.wire.names import check_topic

RATE_MAX = 10_000
RATE_DEFAULT = 100
STOP_PERCENT_DEFAULT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReplay:
    """Which dead letters of `group` (all that these fields say together), where to, and how."""

    group: Annotated[str, GroupField(label=gettext_lazy("Group"))]
    target: Annotated[
        str, forms.ChoiceField(label=gettext_lazy("Send to"), choices=Target.choices, widget=forms.RadioSelect)
    ] = Target.GROUP
    target_topic: Annotated[
        str,
        forms.CharField(
            label=gettext_lazy("Another topic"),
            max_length=TOPIC_CHARS_MAX,
            help_text=gettext_lazy("Only where they go to another topic."),
        ),
    ] = ""
    rate: Annotated[
        int,
        CountField(
            label=gettext_lazy("Messages a second"),
            min_value=1,
            max_value=RATE_MAX,
            help_text=gettext_lazy("It can be changed while the replay runs."),
        ),
    ] = RATE_DEFAULT
    stop_percent: Annotated[
        int,
        CountField(
            label=gettext_lazy("Stop when more percent fail again"),
            max_value=100,
            help_text=gettext_lazy("Of those that were sent. 0: it does not stop by itself."),
        ),
    ] = STOP_PERCENT_DEFAULT
    skip_replayed: Annotated[
        str,
        forms.ChoiceField(
            label=gettext_lazy("Leave out what another replay has sent"), choices=YES_NO, widget=forms.RadioSelect
        ),
    ] = "yes"
    failure: FailureArgument = None
    text: TextArgument = ""
    body: BodyArgument = ""
    since: SinceArgument = None
    until: UntilArgument = None
    user_property: UserPropertyArgument = ""
    attempts: AttemptsArgument = None
    born_since: BornSinceArgument = None
    born_until: BornUntilArgument = None
    archived: ArchivedArgument = "no"
    ids: IdsArgument = ""
    file: Annotated[
        int | None,
        CountField(
            label=gettext_lazy("File"),
            help_text=gettext_lazy("What the file of this number has of the group, and nothing else."),
        ),
    ] = None


def preview(cluster: Cluster, arguments: StartReplay) -> Preview[DryRun]:
    """Counts, samples, asks the brokers. Raises ActionRefused, ActionUnavailable, ValidationError."""
    _check_target(arguments)
    selection = selection_of(arguments, current_caller().role_on(cluster), is_archived=arguments.archived == "yes")
    if arguments.file is not None:
        if selection:
            raise ValidationError({"file": _("A file says by itself what is sent: leave the other filters empty.")})
        selection = {"file": arguments.file}
    if arguments.target == Target.TOPIC and (role := limiting(current_caller().role_on(cluster))):
        selection = {**selection, "role": role}
    newest = DeadLetter.objects.order_by("-pk").values_list("pk", flat=True).first()
    found = dry_run(
        cluster,
        arguments.group,
        selection,
        target=Target(arguments.target),
        target_topic=arguments.target_topic,
        until_id=newest or 0,
    )
    _check_sight(cluster, arguments, found)
    if not found.chosen.count:
        raise ActionRefused(_("No dead letter of the group is selected: nothing would be sent."))
    after = {
        "messages_selected": found.chosen.count,
        "target": str(Target(arguments.target).value),
        "topics": list(found.topics),
        "rate": arguments.rate,
        "stop_percent": arguments.stop_percent,
        "skip_replayed": arguments.skip_replayed,
        "sample": list(found.chosen.sample),
        **_file_words(selection),
    }
    identity = identity_of(arguments.group, selection, arguments.target, arguments.target_topic)
    warnings = warnings_of(found)
    if approval.is_needed(cluster, arguments.group, selection):
        warnings = [_("It waits until another person approves it."), *warnings]
    if running := _running(cluster, identity):
        words = _("Replay %(number)d sends the same already: it goes on, and no second one is started.")
        warnings = [words % {"number": running.pk}, *warnings]
    # A dead letter more is no reason to look again.
    rests_on = {"target": after["target"], "topics": after["topics"], "is_ordered": found.is_ordered}
    return Preview((Change("", {}, after),), found, tuple(warnings), rests_on)


def carry_out(cluster: Cluster, arguments: StartReplay, preview: Preview[DryRun]) -> Iterator[ItemOutcome]:
    """Writes the job, which a worker drives from now on; leaves it at one that says the same."""
    (change,) = preview.changes
    job, is_new = _job(cluster, arguments, preview.plan)
    after = {**change.after, "replay": job.pk}
    outcome = Change("", change.before, after)
    if not is_new:
        yield Change("", after, after, change.note).unchanged()
        return
    say_moved(job)
    tasks.wake(job.pk)
    yield outcome.done()


def _file_words(selection: Mapping[str, Any]) -> dict[str, str]:
    """Returns which file it is, as the audit keeps it: the file itself goes."""
    if "file" not in selection:
        return {}
    file = ReplayFile.objects.get(pk=selection["file"])
    return {"file": f"{file.name}, sha256 {file.digest}"}


def _job(cluster: Cluster, arguments: StartReplay, found: DryRun) -> tuple[ReplayJob, bool]:
    """Returns the job, and whether it was made now. Two at the same time meet in the database."""
    identity = identity_of(arguments.group, found.selection, arguments.target, arguments.target_topic)
    if running := _running(cluster, identity):
        return running, False
    is_asked = approval.is_needed(cluster, arguments.group, found.selection)
    try:
        with transaction.atomic():
            job = ReplayJob.objects.create(
                cluster=cluster,
                identity=identity,
                group_name=arguments.group,
                selection=found.selection,
                selected_count=found.chosen.ledger_count,
                until_id=found.until_id,
                target=arguments.target,
                target_topic=arguments.target_topic,
                skips_replayed=arguments.skip_replayed == "yes",
                rate_per_s=arguments.rate,
                stop_percent=arguments.stop_percent,
                started_by=current_caller().name,
                state=JobState.ASKED if is_asked else JobState.RUNNING,
                created_at=timezone.now(),
            )
    except IntegrityError:
        running = _running(cluster, identity)
        if running is None:
            raise
        return running, False
    return job, True


def _running(cluster: Cluster, identity: str) -> ReplayJob | None:
    return ReplayJob.objects.filter(cluster=cluster, identity=identity).exclude(state__in=ENDED).first()


def _check_target(arguments: StartReplay) -> None:
    if arguments.target != Target.TOPIC:
        if arguments.target_topic:
            raise ValidationError({"target_topic": _("Choose “another topic” above, or leave this empty.")})
        return
    if not arguments.target_topic:
        raise ValidationError({"target_topic": _("Name the topic that they go to.")})
    try:
        check_topic(arguments.target_topic)
    except MessageError as error:
        raise ValidationError({"target_topic": str(error)}) from error


def _check_sight(cluster: Cluster, arguments: StartReplay, found: DryRun) -> None:
    """Raises ActionRefused where bodies would go from a topic that is hidden from who asks to one that is not."""
    role = current_caller().role_on(cluster)
    if arguments.target != Target.TOPIC or is_masked(settings.MQADMIN_MASKED, role, {arguments.target_topic}):
        return
    with awaited():
        is_hidden = has_hidden(cluster, arguments.group, found.selection, until_id=found.until_id, role=role)
    if is_hidden:
        raise ActionRefused(
            _("Bodies of these messages are hidden from your role: they may not go to a topic where it sees them.")
        )


def adapt(form: forms.Form, _cluster: Cluster, subject: str) -> None:
    """Starts the form at the group."""
    form.fields["group"].initial = subject


DECLARATION: Action[StartReplay, DryRun] = Action(
    name="start_replay",
    title=gettext_lazy("Replay dead letters"),
    permission="mq_replays.add_replayjob",
    arguments=StartReplay,
    subject="group",
    preview=preview,
    carry_out=carry_out,
    adapt=adapt,
)
