"""Who asks for a run, and by which way the wish came in; the audit keeps both.

Each way in makes one Caller per request: `page_caller` for a page, `Caller(person=…, way=Way.REST, via=token name, …)`
for REST, and so on. `person` is always an account: a token or a scheduled job acts for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.http import HttpRequest

from mqadmin.clusters.models import Cluster
from mqadmin.people import access
from mqadmin.people.access import Person, Scope
from mqadmin.people.roles import Role, lowest

# An IPv6 address with its zone.
ADDRESS_CHARS_MAX = 64
USER_AGENT_CHARS_MAX = 200
VIA_CHARS_MAX = 100


class Way(StrEnum):
    """The way in."""

    PAGE = "page"
    REST = "rest"
    CELERY = "celery"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An account and the way by which it asks.

    `via` names what stands between the account and the run: an API token, a scheduled job. `address` and `user_agent`
    are those of the HTTP request, "" where there was none. `scope` are the bounds of what stands between: it never
    gives more than the account has.
    """

    person: Person
    way: Way
    address: str = ""
    user_agent: str = ""
    via: str = ""
    scope: Scope | None = None

    @property
    def name(self) -> str:
        """Returns the account's name; "" for nobody."""
        return self.person.get_username()

    def role_on(self, cluster: Cluster) -> Role | None:
        """Returns the account's role on a cluster, or that of the bounds where it is lower."""
        role = access.role_on(self.person, cluster)
        return role if role is None or self.scope is None else lowest((role, self.scope.role))

    @property
    def origin(self) -> dict[str, str]:
        """Returns what the audit keeps besides the name, within the limits of its columns."""
        return {
            "way": self.way,
            "address": _clean(self.address, ADDRESS_CHARS_MAX),
            "user_agent": _clean(self.user_agent, USER_AGENT_CHARS_MAX),
            "via": _clean(self.via, VIA_CHARS_MAX),
        }


def page_caller(request: HttpRequest) -> Caller:
    """Returns the caller of a page's request."""
    return http_caller(request, request.user, Way.PAGE)


def http_caller(request: HttpRequest, person: Person, way: Way, via: str = "", scope: Scope | None = None) -> Caller:
    """Returns the caller of an HTTP request whose account is known otherwise than by its session."""
    address, user_agent = request.META.get("REMOTE_ADDR", ""), request.headers.get("User-Agent", "")
    return Caller(person=person, way=way, address=address, user_agent=user_agent, via=via, scope=scope)


def _clean(text: str, chars_max: int) -> str:
    return text.replace("\0", "")[:chars_max]
