"""The words of roles and of what is on or off, as forms and pages show them."""

from __future__ import annotations

from django.utils.translation import gettext_lazy

from mqadmin.people.roles import Role

ROLE_WORDS = {
    Role.VIEWER: gettext_lazy("viewer"),
    Role.OPERATOR: gettext_lazy("operator"),
    Role.ADMIN: gettext_lazy("administrator"),
}
ROLE_CHOICES = (("", gettext_lazy("none")), *((role.value, word) for role, word in ROLE_WORDS.items()))
# Not a check box: a form leaves an unchecked one out, and an address could not say it.
YES_NO = (("yes", gettext_lazy("yes")), ("no", gettext_lazy("no")))
