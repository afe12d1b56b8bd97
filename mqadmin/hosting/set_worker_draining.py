"""Drains a worker: its instances run elsewhere, and it gets none until it is started anew or drains no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from consumer.models import LoopsWorker
from mqadmin.actions.declaration import Change, InstallationAction, ItemOutcome, Preview, Undo
from mqadmin.actions.switches import undo_of_switch, yes_no
from mqadmin.hosting import workers
from mqadmin.people.words import YES_NO


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWorkerDraining:
    """Whether the worker gives its instances away. `worker` is its Celery node name."""

    worker: Annotated[str, forms.CharField(label=gettext_lazy("Worker"), max_length=workers.NODE_CHARS_MAX)]
    draining: Annotated[str, forms.ChoiceField(label=gettext_lazy("Draining"), choices=YES_NO)]


def preview(arguments: SetWorkerDraining) -> Preview[workers.Worker]:
    """Returns the change, and warns of instances for which no other worker has a slot. Raises ValidationError."""
    listed = workers.workers()
    worker = next((one for one in listed if one.node == arguments.worker), None)
    if worker is None:
        raise ValidationError({"worker": _("There is no worker of this name.")})
    change = Change("", {"draining": yes_no(worker.is_draining)}, {"draining": arguments.draining})
    warnings = []
    lacking = workers.lacking_without(worker, listed) if change.is_change and arguments.draining == "yes" else 0
    if lacking:
        text = ngettext(
            "The other workers have no slot for %(n)d of its instances, which ends.",
            "The other workers have no slots for %(n)d of its instances, which end.",
            lacking,
        )
        warnings.append(text % {"n": lacking})
    return Preview((change,), worker, tuple(warnings))


def carry_out(arguments: SetWorkerDraining, preview: Preview[workers.Worker]) -> Iterator[ItemOutcome]:
    """Writes it into the worker's row, which supervision reads; not into that of a worker started since."""
    (change,) = preview.changes
    if not change.is_change:
        yield change.unchanged()
        return
    row = LoopsWorker.objects.filter(node=arguments.worker, boot=preview.plan.boot)
    if row.update(is_draining=arguments.draining == "yes"):
        yield change.done()
    else:
        yield change.failed(_("The worker was started anew meanwhile: look again."))


def undo(arguments: SetWorkerDraining, outcomes: Sequence[ItemOutcome]) -> Undo | None:
    """Returns the opposite."""
    return undo_of_switch(DECLARATION.name, arguments, "draining", outcomes)


def adapt(form: forms.Form, subject: str) -> None:
    """Offers the opposite of what is."""
    row = LoopsWorker.objects.filter(node=subject).first() if subject else None
    if row is not None:
        form.fields["draining"].initial = yes_no(not row.is_draining)


DECLARATION: InstallationAction[SetWorkerDraining, workers.Worker] = InstallationAction(
    name="set_worker_draining",
    title=gettext_lazy("Drain a worker, or use it again"),
    permission="mq_consumer.change_loopsworker",
    arguments=SetWorkerDraining,
    subject="worker",
    preview=preview,
    carry_out=carry_out,
    undo=undo,
    adapt=adapt,
)
