"""Arguments of actions: one declaration that gives the typed value, the form, and a schema.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ResizeTopic:
        topic: Annotated[str, forms.CharField(label=_("Topic"), max_length=127)]
        queues: Annotated[int, CountField(label=_("Queues"), min_value=1, max_value=1024)] = 8

The annotation's form field validates, and its label, help text, choices and limits are the words and the schema. A
field of the dataclass without a default is required; a missing value takes the default. A boolean's default is False,
since a form leaves an unchecked box out.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Hashable, Mapping
from copy import deepcopy
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from mqadmin.actions.declaration import Action, AnyAction
from mqadmin.actions.secret_words import LEFT_OUT, without_secrets
from mqadmin.clusters.models import ID_MAX, Cluster

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COUNT_DIGITS_MAX = 9


class CountField(forms.IntegerField):
    """A whole number in ASCII digits; Django's own field also takes other digits and a fraction of 0."""

    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        text = str(value).strip()
        if not (text.isascii() and text.isdigit() and len(text) <= COUNT_DIGITS_MAX):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return int(text)


class SaidField(forms.CharField):
    """A text that may be empty, or None where nothing is said: what is not said stays as it is."""

    empty_values = [None]  # noqa: RUF012 - as Django declares it

    def to_python(self, value: Any) -> str | None:
        """Returns None only for what was left out."""
        return None if value is None else str(super().to_python(value))

    def run_validators(self, value: Any) -> None:
        """Raises ValidationError; no rule is for an empty text."""
        if value != "":
            super().run_validators(value)


class YesNoField(forms.TypedChoiceField):
    """True or False, as JSON or a form has it. Unlike a box to tick it tells "no" from "not said"."""

    def __init__(self, **how: Any) -> None:
        choices = how.pop("choices", (("", _lazy("as it is")), ("true", _lazy("yes")), ("false", _lazy("no"))))
        super().__init__(choices=choices, coerce=lambda text: text == "true", **how)

    def to_python(self, value: Any) -> str:
        """Returns "true" or "false", however it is written; "" where nothing is said."""
        return str(super().to_python(value)).lower()

    def prepare_value(self, value: Any) -> str:
        """Returns the choice that a form shows."""
        return self.to_python(value)


class ContentField(SaidField):
    """What a message carries. The audit keeps its length and digest: more people read it than may see every body."""

    def __init__(self, **how: Any) -> None:
        super().__init__(strip=False, widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}), **how)


class IdField(forms.IntegerField):
    """The number of a row."""

    def __init__(self, **how: Any) -> None:
        super().__init__(min_value=1, max_value=ID_MAX, **how)


class SecretField(forms.CharField):
    """What opens something: a password, an address with a key in it. No page shows it again, and no audit keeps it.

    Its action is sent in one step by a form that posts: an address would stand in logs (`views/action.py`).
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), **how)


class InvalidArguments(Exception):
    """Arguments that are not valid; `errors` holds the sentences by argument, "" for those about no single one."""

    def __init__(self, errors: Mapping[str, list[str]]) -> None:
        super().__init__(" ".join(sentence for sentences in errors.values() for sentence in sentences))
        self.errors = dict(errors)

    @classmethod
    def of(cls, error: ValidationError) -> InvalidArguments:
        """Converts Django's ValidationError."""
        if not hasattr(error, "error_dict"):
            return cls({"": error.messages})
        return cls({"" if name == "__all__" else name: words for name, words in error.message_dict.items()})


def arguments_form(
    action: AnyAction,
    cluster: Cluster | None,
    subject: str = "",
    data: Mapping[str, Any] | None = None,
) -> forms.Form:
    """Returns the form of an action on a cluster, None for one about the installation.

    `subject` is "" where the form asks for its name.
    """
    form = _form_class(cast(Hashable, action.arguments))(data)
    if action.adapt is not None:
        if isinstance(action, Action):
            assert cluster is not None
            action.adapt(form, cluster, subject)
        else:
            action.adapt(form, subject)
    return form


def has_secrets(action: AnyAction) -> bool:
    """Tells whether an argument of the action opens something, so that nothing may keep its arguments."""
    return any(
        isinstance(field, SecretField) for field in _form_class(cast(Hashable, action.arguments)).base_fields.values()
    )


def read_arguments(action: AnyAction, cluster: Cluster | None, values: Mapping[str, Any]) -> Any:
    """Validates the values of a form, a JSON document or a command line. Raises InvalidArguments.

    Returns an instance of the dataclass that the action declares.
    """
    form = arguments_form(action, cluster, str(values.get(action.subject, "")), values)
    unknown = [name for name in values if name not in form.fields]
    if unknown:
        names = ", ".join(without_secrets(sorted(unknown)))[:200]
        raise InvalidArguments({"": [_("There is no argument %(names)s.") % {"names": names}]})
    if not form.is_valid():
        raise InvalidArguments.of(ValidationError(form.errors.as_data()))
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in form.cleaned_data.items()
        if not _is_missing(form.fields[name], value)
    }
    return action.arguments(**given)


def arguments_json(arguments: DataclassInstance) -> dict[str, Any]:
    """Returns the arguments as plain JSON; a day as ISO 8601 writes it."""
    return {name: _json(value) for name, value in dataclasses.asdict(arguments).items()}


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json(one) for one in value]
    return value.isoformat() if isinstance(value, date) else value


def _is_missing(field: forms.Field, value: Any) -> bool:
    return not field.required and value in field.empty_values


def without_contents(action: AnyAction | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values with length and digest in place of what a message carries, and without what is secret."""
    fields = declared_form(action).fields if action is not None else {}
    return {name: _kept(fields.get(name), value) for name, value in values.items()}


def secret_names(action: AnyAction) -> frozenset[str]:
    """Returns the names of the arguments that nobody may see again."""
    return frozenset(name for name, field in declared_form(action).fields.items() if isinstance(field, SecretField))


def _kept(field: forms.Field | None, value: Any) -> Any:
    if value is not None and isinstance(field, ContentField):
        return _digest(str(value))
    return LEFT_OUT if value and isinstance(field, SecretField) else value


def _digest(content: str) -> str:
    return f"{len(content)} characters, sha256 {hashlib.sha256(content.encode(errors='replace')).hexdigest()}"


def declared_form(action: AnyAction) -> forms.Form:
    """Returns the form as it is declared, without what depends on a cluster."""
    return _form_class(cast(Hashable, action.arguments))()


@cache
def _form_class(arguments: Any) -> type[forms.Form]:
    hints = get_type_hints(arguments, include_extras=True)
    fields = {one.name: _form_field(one, hints[one.name]) for one in dataclasses.fields(arguments)}
    return type(f"{arguments.__name__}Form", (forms.Form,), fields)


def _form_field(argument: dataclasses.Field[Any], hint: Any) -> forms.Field:
    (declared,) = (one for one in hint.__metadata__ if isinstance(one, forms.Field))
    field = deepcopy(declared)
    has_default = argument.default is not dataclasses.MISSING
    field.required = not has_default
    if has_default:
        field.initial = argument.default
    return field
