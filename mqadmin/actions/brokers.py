"""Questions, rules and outcomes that actions on a cluster's brokers share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mqadmin.actions.declaration import ActionUnavailable, Change, ItemOutcome, ItemState, Undo
from mqadmin.clusters.models import Cluster
from mqadmin.observing.gateway import ChangeFailure, Gateway, GatewayError, Master, ask

V = TypeVar("V")


class BrokersField(forms.MultipleChoiceField):
    """A form field for the brokers that take a change, named `brokers`; `offer_brokers` gives it its choices."""

    def __init__(self, **how: Any) -> None:
        super().__init__(
            label=gettext_lazy("Brokers"),
            help_text=gettext_lazy("None chosen: all of them."),
            widget=forms.CheckboxSelectMultiple,
            **how,
        )


def offer_brokers(form: forms.Form, cluster: Cluster, _subject: str = "") -> None:
    """Offers the masters of the cluster; hides the choice where there is only one."""
    names = list(cluster.brokers.filter(broker_id=0).order_by("name").values_list("name", flat=True))
    field = form.fields["brokers"]
    field.choices = [(name, name) for name in names]  # type: ignore[attr-defined]
    if len(names) < 2:
        field.widget = field.hidden_widget()


async def chosen_masters(gateway: Gateway, chosen: Sequence[str]) -> list[Master]:
    """Returns the masters of these names, all of them where none is named. Raises ValidationError for unknown ones."""
    masters = await gateway.masters()
    if missing := sorted(set(chosen) - {one.name for one in masters}):
        words = _("The name server does not know %(names)s as brokers that take changes.")
        raise ValidationError({"brokers": words % {"names": ", ".join(missing)}})
    return [one for one in masters if not chosen or one.name in chosen]


def ask_cluster(cluster: Cluster, call: Callable[[Gateway], Coroutine[Any, Any, V]]) -> V:
    """Returns what `call` returns. Raises ActionUnavailable when no name server answers.

    A master that was followed before counts where its name server is silent: each of our brokers is known to its own
    one alone, and would be left out without a word.
    """
    followed = cluster.brokers.filter(broker_id=0).values_list("name", "address")
    remembered = [Master(name, address, cluster.rocketmq_name) for name, address in followed]
    try:
        return ask(cluster.namesrv, call, remembered=remembered)
    except GatewayError as error:
        raise ActionUnavailable(str(error)) from error


def refuse_when_none_answers(masters: Sequence[Master], failures: Mapping[str, str]) -> None:
    """Raises ActionUnavailable when none of the brokers answers."""
    if not masters:
        raise ActionUnavailable(_("The name server knows no broker of this cluster that takes changes."))
    if all(master.address in failures for master in masters):
        raise ActionUnavailable(" ".join(failures[master.address] for master in masters))


def outcomes_by_address(changes: Mapping[str, Change], failures: Mapping[str, ChangeFailure]) -> Iterator[ItemOutcome]:
    """Yields the outcome of each change; `failures` are the gateway's."""
    for address, change in changes.items():
        failure = failures.get(address)
        if failure is None:
            yield change.done()
        elif failure.is_unknown:
            yield change.unknown(failure.reason)
        else:
            yield change.failed(failure.reason)


def silent_changes(
    masters: Sequence[Master], answered: Collection[str], failures: Mapping[str, str], after: Mapping[str, Any]
) -> tuple[Change, ...]:
    """Returns a change per master that did not say what it has; `answered` are addresses."""
    return tuple(
        Change(one.name, None, after, note=failures.get(one.address, ""))
        for one in masters
        if one.address not in answered
    )


def left_alone(silent: Sequence[Change]) -> Iterator[ItemOutcome]:
    """Yields the outcome of each change that was not tried, because its broker did not say what it has."""
    for change in silent:
        words = _("It did not answer and keeps what it has: do this again when it is back. %(reason)s")
        yield change.skipped(words % {"reason": change.note})


def common_before(outcomes: Sequence[ItemOutcome]) -> Mapping[str, Any] | None:
    """Returns the values that all items had alike before a run that changed each of them; None where there are none."""
    before = outcomes[0].before
    if any(one.state != ItemState.DONE or one.before != before for one in outcomes):
        return None
    return before


def undo_of_creation(
    create: str, delete: str, subject: Mapping[str, str], brokers: Sequence[str], outcomes: Sequence[ItemOutcome]
) -> Undo | None:
    """Returns what takes back a creation or change: the deletion where no broker had it, else the settings before.

    `create` and `delete` are names of actions, `subject` the argument that names the topic or group. None where the
    brokers had different settings, or where only some brokers were chosen: others may have it, too.
    """
    before = common_before(outcomes)
    if before is None:
        return None
    if before:
        return Undo(create, {**subject, **before, **({"brokers": list(brokers)} if brokers else {})})
    return None if brokers else Undo(delete, subject)
