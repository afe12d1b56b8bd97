"""Who asks, and what of it they may see: an account, and the token that narrows its rights."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request

from mqadmin.clusters.models import Cluster
from mqadmin.people import access
from mqadmin.people.access import Scope
from mqadmin.people.caller import Caller, Way, http_caller
from mqadmin.people.roles import Role
from mqadmin.tokens.models import ApiToken

AUDIT = "mq_audit.view_auditentry"


def token_of(request: Request) -> ApiToken | None:
    """Returns the token of the request; None where a session stands for the account."""
    return request.auth if isinstance(request.auth, ApiToken) else None


def scope_of(request: Request) -> Scope | None:
    """Returns the bounds of the request's token; None where it has none."""
    token = token_of(request)
    return token.scope if token is not None else None


def caller_of(request: Request) -> Caller:
    """Returns who asks for a run."""
    token = token_of(request)
    name = token.name if token is not None else ""
    return http_caller(request._request, request.user, Way.REST, via=name, scope=scope_of(request))


def may_see(request: Request, cluster: str) -> bool:
    """Returns whether the caller may read what is known of a cluster; "" is none of them."""
    if not cluster or access.sees_all(request.user, scope_of(request)):
        return True
    return clusters_seen(request).filter(name=cluster).exists()


def may(request: Request, permission: str) -> bool:
    """Returns whether the caller has a permission on the installation."""
    return access.may(request.user, permission, None, scope_of(request))


def clusters_seen(request: Request) -> QuerySet[Cluster]:
    """Returns the clusters that the caller may see."""
    return access.visible_clusters(request.user, scope_of(request))


def role_on(request: Request, cluster: Cluster) -> Role | None:
    """Returns the caller's role on a cluster: the account's, or the token's where that is lower."""
    return caller_of(request).role_on(cluster)


def may_read_run(request: Request, actor: str, cluster: str) -> bool:
    """Returns whether the caller may read what became of a run: their own, or as a reader of the audit."""
    scope = scope_of(request)
    if scope is not None and scope.clusters is not None and cluster not in scope.clusters:
        return False
    readable = access.clusters_where(request.user, AUDIT, scope)
    return actor == request.user.get_username() or readable is None or cluster in readable
