"""Which page runs which action: its address, where it stands, and where it ends.

The page itself is made from the action's declaration (`views/action.py`); a new action needs a row here and a line in
`urls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext

from mqadmin.actions.runs import Result
from mqadmin.audit.models import Outcome
from mqadmin.clusters import selectors
from mqadmin.console import sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPage:
    """The page of one action. `url_name` takes the cluster where `has_cluster`, and the subject where `has_subject`.

    `section` is that of the navigation, `subject_url_name` the page of the subject. `ends` answers a run in its own
    way; else the run's own page does. `require` raises ObjectDoesNotExist for a subject that the console does not know.
    """

    action: str
    url_name: str
    section: str
    subject_url_name: str
    has_subject: bool = True
    has_cluster: bool = True
    ends: Callable[[HttpRequest, Result], HttpResponse] | None = None
    require: Callable[[str, str], object] | None = None

    def address(self, cluster: str, subject: str = "") -> str:
        return reverse(self.url_name, args=[*self._place(cluster), *([subject] if self.has_subject else [])])

    def subject_address(self, cluster: str, subject: str) -> str:
        """The address of the subject's page; "" where it has none."""
        return reverse(self.subject_url_name, args=[*self._place(cluster), subject]) if self.subject_url_name else ""

    def section_address(self, cluster: str) -> str:
        return reverse(self.section, args=self._place(cluster))

    def _place(self, cluster: str) -> list[str]:
        return [cluster] if self.has_cluster else []


def _back_with_notice(request: HttpRequest, result: Result) -> HttpResponse:
    """Redirects to where the form was sent from, else to the group's members, with a notice of the outcome."""
    if result.outcome == Outcome.DONE:
        words = sentences.instances_set_sentence(result.subject, result.arguments["wanted"])
        link = format_html('<a href="{}">{}</a>', run_address(result), gettext("What was done"))
        messages.success(request, format_html("{} {}", words, link))
    else:
        messages.error(request, gettext("%(reason)s Nothing was changed.") % {"reason": result.reason})
    back = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        return redirect(back)
    return redirect("group_members", result.cluster, result.subject)


SET_WANTED_INSTANCES = ActionPage(
    action="set_wanted_instances",
    url_name="group_instances",
    section="groups",
    subject_url_name="group",
    ends=_back_with_notice,
    require=selectors.group_page,
)

CREATE_TOPIC = ActionPage(
    action="create_topic",
    url_name="create_topic",
    section="topics",
    subject_url_name="topic",
    has_subject=False,
)
DELETE_TOPIC = ActionPage(
    action="delete_topic",
    url_name="delete_topic",
    section="topics",
    subject_url_name="topic",
)
SET_TOPIC_PERMISSION = ActionPage(
    action="set_topic_permission",
    url_name="set_topic_permission",
    section="topics",
    subject_url_name="topic",
)

DESCRIBE_TOPIC = ActionPage(
    action="describe_topic",
    url_name="describe_topic",
    section="topics",
    subject_url_name="topic",
)
DESCRIBE_GROUP = ActionPage(
    action="describe_group",
    url_name="describe_group",
    section="groups",
    subject_url_name="group",
)

CREATE_GROUP = ActionPage(
    action="create_group",
    url_name="create_group",
    section="groups",
    subject_url_name="group",
    has_subject=False,
)
SET_GROUP_CONSUMPTION = ActionPage(
    action="set_group_consumption",
    url_name="set_group_consumption",
    section="groups",
    subject_url_name="group",
)
DELETE_GROUP = ActionPage(
    action="delete_group",
    url_name="delete_group",
    section="groups",
    subject_url_name="group",
)
CHANGE_BROKER_CONFIG = ActionPage(
    action="change_broker_config",
    url_name="change_broker_config",
    section="cluster",
    subject_url_name="broker",
)
SET_BROKER_WRITE_PERMISSION = ActionPage(
    action="set_broker_write_permission",
    url_name="set_broker_write_permission",
    section="cluster",
    subject_url_name="broker",
)

ADD_CLUSTER = ActionPage(
    action="add_cluster",
    url_name="add_cluster",
    section="overview",
    subject_url_name="cluster",
    has_subject=False,
    has_cluster=False,
)
CHANGE_CLUSTER = ActionPage(
    action="change_cluster",
    url_name="change_cluster",
    section="overview",
    subject_url_name="cluster",
    has_cluster=False,
)
REMOVE_CLUSTER = ActionPage(
    action="remove_cluster",
    url_name="remove_cluster",
    section="overview",
    subject_url_name="cluster",
    has_cluster=False,
)
CREATE_TOKEN = ActionPage(
    action="create_token",
    url_name="create_token",
    section="tokens",
    subject_url_name="",
    has_subject=False,
    has_cluster=False,
)
REVOKE_TOKEN = ActionPage(
    action="revoke_token",
    url_name="revoke_token",
    section="tokens",
    subject_url_name="",
    has_cluster=False,
)

ADD_PERSON = ActionPage(
    action="add_person",
    url_name="add_person",
    section="people",
    subject_url_name="person",
    has_subject=False,
    has_cluster=False,
)
GIVE_ROLE = ActionPage(
    action="give_role", url_name="give_role", section="people", subject_url_name="person", has_cluster=False
)
SET_PERSON_ACTIVE = ActionPage(
    action="set_person_active",
    url_name="set_person_active",
    section="people",
    subject_url_name="person",
    has_cluster=False,
)
END_LOG_INS = ActionPage(
    action="end_log_ins", url_name="end_log_ins", section="people", subject_url_name="person", has_cluster=False
)
SET_READ_ONLY = ActionPage(
    action="set_read_only", url_name="set_read_only", section="overview", subject_url_name="cluster", has_cluster=False
)
MAKE_JOB = ActionPage(
    action="make_job",
    url_name="make_job",
    section="jobs",
    subject_url_name="",
    has_subject=False,
    has_cluster=False,
)
SET_JOB_RUNNING = ActionPage(
    action="set_job_running", url_name="set_job_running", section="jobs", subject_url_name="", has_cluster=False
)
DELETE_JOB = ActionPage(
    action="delete_job", url_name="delete_job", section="jobs", subject_url_name="", has_cluster=False
)
EXPIRE_AUDIT = ActionPage(
    action="expire_audit",
    url_name="expire_audit",
    section="audit",
    subject_url_name="",
    has_subject=False,
    has_cluster=False,
)

PAGES: Mapping[str, ActionPage] = {
    page.action: page
    for page in (
        SET_WANTED_INSTANCES,
        CREATE_TOPIC,
        SET_TOPIC_PERMISSION,
        DELETE_TOPIC,
        CREATE_GROUP,
        SET_GROUP_CONSUMPTION,
        DELETE_GROUP,
        CHANGE_BROKER_CONFIG,
        SET_BROKER_WRITE_PERMISSION,
        ADD_CLUSTER,
        CHANGE_CLUSTER,
        REMOVE_CLUSTER,
        ADD_PERSON,
        GIVE_ROLE,
        SET_PERSON_ACTIVE,
        END_LOG_INS,
        SET_READ_ONLY,
        MAKE_JOB,
        SET_JOB_RUNNING,
        DELETE_JOB,
        EXPIRE_AUDIT,
        DESCRIBE_TOPIC,
        DESCRIBE_GROUP,
        CREATE_TOKEN,
        REVOKE_TOKEN,
    )
}


def run_address(result: Result) -> str:
    """Returns the address of the page of a run."""
    return reverse("action_run", args=[result.run_id])


def undo_address(result: Result) -> str | None:
    """Returns the address of the page that previews taking a run back; None where nothing does."""
    if result.undo is None:
        return None
    page = PAGES[result.undo.action]
    return f"{page.address(result.cluster, result.subject)}?{_query(result.undo.arguments)}"


def _query(arguments: Mapping[str, Any]) -> str:
    query = QueryDict(mutable=True)
    for name, value in arguments.items():
        query.setlist(name, [str(one) for one in value] if isinstance(value, list) else [str(value)])
    return query.urlencode()
