"""Which page runs which action: its address, where it stands, and where it ends.

The page itself is made from the action's declaration (`views/action.py`); a new action needs a row here and a line in
`urls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from mqadmin.action_runs.runs import Result
from mqadmin.actions.present import OnBrokers
from mqadmin.audit.models import Outcome
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Cluster
from mqadmin.console import sentences
from mqadmin.console.going_back import address_to_go_back_to
from mqadmin.console.stored_words import in_viewers_language
from mqadmin.deadletters import selectors as dead_letters
from mqadmin.groups import settings as group_settings
from mqadmin.topics import settings as topic_settings

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise


# Lists of what may be of any cluster.
SECTIONS_OF_ALL = frozenset({"alerts", "alert_silences"})


# What selects dead letters: links from lists say it, people seldom type it.
SELECTING = frozenset(
    ("failure", "text", "body", "since", "until", "user_property", "attempts", "born_since", "born_until", "ids")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPage:
    """The page of one action. Its address takes the cluster where `has_cluster`, and the subject where `has_subject`.

    The address is named as the action, or `url_name`. `section` is that of the navigation, `subject_url_name` the page
    of the subject. `ends` answers a run in its own way; else the run's own page does. `require` raises
    ObjectDoesNotExist for a subject that the console does not know. `present` asks the brokers for what the form starts
    with, and `title` stands there for the action's own. Of the `folded` arguments the form shows those that say
    something, and has the others behind a word.
    """

    action: str
    section: str
    subject_url_name: str
    url_name: str = ""
    has_subject: bool = True
    has_cluster: bool = True
    ends: Callable[[HttpRequest, Result], HttpResponse] | None = None
    require: Callable[[str, str], object] | None = None
    present: Callable[[Cluster, str], OnBrokers] | None = None
    title: _StrOrPromise = ""
    folded: frozenset[str] = frozenset()

    @property
    def address_name(self) -> str:
        """The name of its address in `urls.py`."""
        return self.url_name or self.action

    def address(self, cluster: str, subject: str = "") -> str:
        return reverse(self.address_name, args=[*self._place(cluster), *([subject] if self.has_subject else [])])

    def subject_address(self, cluster: str, subject: str) -> str:
        """The address of the subject's page; "" where it has none, as what was refused for its name has not."""
        try:
            return reverse(self.subject_url_name, args=[*self._place(cluster), subject])
        except NoReverseMatch:
            return ""

    def section_address(self, cluster: str) -> str:
        """The address of the list that it stands in; that of alerts is about all clusters."""
        return reverse(self.section, args=[] if self.section in SECTIONS_OF_ALL else self._place(cluster))

    def _place(self, cluster: str) -> list[str]:
        return [cluster] if self.has_cluster else []


def _back_with_notice(request: HttpRequest, result: Result) -> HttpResponse:
    """Redirects to where the form was sent from, else to the group's members, with a notice of the outcome."""
    if result.outcome == Outcome.DONE:
        words = sentences.instances_set_sentence(result.subject, result.arguments["wanted"])
        link = format_html('<a href="{}">{}</a>', run_address(result), gettext("What was done"))
        messages.success(request, format_html("{} {}", words, link))
    else:
        messages.error(
            request, gettext("%(reason)s Nothing was changed.") % {"reason": in_viewers_language(result.reason)}
        )
    if back := address_to_go_back_to(request):
        return redirect(back)
    return redirect("group_members", result.cluster, result.subject)


def _known_failure(cluster: str, failure: str) -> object:
    return dead_letters.failure(selectors.cluster_head(cluster), int(failure))


def _known_dead_letter(cluster: str, message: str) -> object:
    return dead_letters.dead_letter(selectors.cluster_head(cluster), int(message))


PAGES: Mapping[str, ActionPage] = {
    page.action: page
    for page in (
        # Of a cluster.
        ActionPage(
            action="set_wanted_instances",
            section="groups",
            subject_url_name="group",
            url_name="group_instances",
            ends=_back_with_notice,
            require=selectors.group_page,
        ),
        ActionPage(
            action="set_instances_running",
            section="groups",
            subject_url_name="group_members",
            require=selectors.group_page,
        ),
        ActionPage(action="create_topic", section="topics", subject_url_name="topic", has_subject=False),
        ActionPage(action="delete_topic", section="topics", subject_url_name="topic"),
        ActionPage(action="set_topic_permission", section="topics", subject_url_name="topic"),
        ActionPage(action="describe_topic", section="topics", subject_url_name="topic"),
        ActionPage(action="describe_group", section="groups", subject_url_name="group"),
        # Its subject may be a pattern, which has no page.
        ActionPage(action="set_objective", section="groups", subject_url_name="groups"),
        ActionPage(
            action="archive_failure", section="dead_letters", subject_url_name="failure", require=_known_failure
        ),
        ActionPage(
            action="restore_failure", section="dead_letters", subject_url_name="failure", require=_known_failure
        ),
        ActionPage(
            action="describe_failure", section="dead_letters", subject_url_name="failure", require=_known_failure
        ),
        ActionPage(
            action="archive_dead_letters",
            section="dead_letters",
            subject_url_name="group_dead_letters",
            folded=SELECTING,
        ),
        ActionPage(
            action="restore_dead_letters",
            section="dead_letters",
            subject_url_name="group_dead_letters",
            folded=SELECTING | {"archived_at"},
        ),
        ActionPage(
            action="archive_dead_letter",
            section="dead_letters",
            subject_url_name="dead_letter",
            require=_known_dead_letter,
        ),
        ActionPage(
            action="restore_dead_letter",
            section="dead_letters",
            subject_url_name="dead_letter",
            require=_known_dead_letter,
        ),
        ActionPage(action="create_group", section="groups", subject_url_name="group", has_subject=False),
        ActionPage(action="set_group_consumption", section="groups", subject_url_name="group"),
        ActionPage(action="delete_group", section="groups", subject_url_name="group"),
        ActionPage(action="make_report", section="reports", subject_url_name="day_report", has_subject=False),
        ActionPage(action="set_report_mail", section="reports", subject_url_name=""),
        ActionPage(action="change_broker_config", section="cluster", subject_url_name="broker"),
        ActionPage(action="set_broker_write_permission", section="cluster", subject_url_name="broker"),
        ActionPage(action="mend_dead_letter", section="dead_letters", subject_url_name="dead_letter"),
        ActionPage(action="patch_dead_letters", section="dead_letters", subject_url_name="group_dead_letters"),
        ActionPage(action="discard_mend", section="dead_letters", subject_url_name="dead_letter"),
        ActionPage(
            action="start_replay",
            section="replays",
            subject_url_name="group_dead_letters",
            folded=SELECTING | {"archived", "file"},
        ),
        ActionPage(action="delete_replay_file", section="replays", subject_url_name="replay_file"),
        ActionPage(action="pause_replay", section="replays", subject_url_name="replay"),
        ActionPage(action="resume_replay", section="replays", subject_url_name="replay"),
        ActionPage(action="cancel_replay", section="replays", subject_url_name="replay"),
        ActionPage(action="set_replay_rate", section="replays", subject_url_name="replay"),
        ActionPage(action="approve_replay", section="replays", subject_url_name="replay"),
        ActionPage(action="refuse_replay", section="replays", subject_url_name="replay"),
        ActionPage(action="make_rule", section="dead_letter_rules", subject_url_name="", has_subject=False),
        ActionPage(action="set_rule_running", section="dead_letter_rules", subject_url_name=""),
        ActionPage(action="delete_rule", section="dead_letter_rules", subject_url_name=""),
        ActionPage(action="acknowledge_alert", section="alerts", subject_url_name=""),
        ActionPage(action="add_silence", section="alert_silences", subject_url_name="", has_subject=False),
        ActionPage(action="end_silence", section="alert_silences", subject_url_name=""),
        # Of the installation.
        ActionPage(
            action="set_alert_rule", section="alert_rules", subject_url_name="", has_subject=False, has_cluster=False
        ),
        ActionPage(action="set_alert_rule_running", section="alert_rules", subject_url_name="", has_cluster=False),
        ActionPage(action="delete_alert_rule", section="alert_rules", subject_url_name="", has_cluster=False),
        ActionPage(
            action="set_alert_channel",
            section="alert_channels",
            subject_url_name="",
            has_subject=False,
            has_cluster=False,
        ),
        ActionPage(action="delete_alert_channel", section="alert_channels", subject_url_name="", has_cluster=False),
        ActionPage(action="send_test_alert", section="alert_channels", subject_url_name="", has_cluster=False),
        ActionPage(
            action="add_cluster", section="overview", subject_url_name="cluster", has_subject=False, has_cluster=False
        ),
        ActionPage(action="change_cluster", section="overview", subject_url_name="cluster", has_cluster=False),
        ActionPage(action="remove_cluster", section="overview", subject_url_name="cluster", has_cluster=False),
        ActionPage(action="create_token", section="tokens", subject_url_name="", has_subject=False, has_cluster=False),
        ActionPage(action="revoke_token", section="tokens", subject_url_name="", has_cluster=False),
        ActionPage(
            action="add_person", section="people", subject_url_name="person", has_subject=False, has_cluster=False
        ),
        ActionPage(action="give_role", section="people", subject_url_name="person", has_cluster=False),
        ActionPage(action="set_person_active", section="people", subject_url_name="person", has_cluster=False),
        ActionPage(action="new_password", section="people", subject_url_name="person", has_cluster=False),
        ActionPage(action="end_log_ins", section="people", subject_url_name="person", has_cluster=False),
        ActionPage(action="set_read_only", section="overview", subject_url_name="cluster", has_cluster=False),
        ActionPage(action="set_worker_draining", section="workers", subject_url_name="", has_cluster=False),
        ActionPage(action="send_outbox_again", section="outbox", subject_url_name="", has_cluster=False),
        ActionPage(action="make_job", section="jobs", subject_url_name="", has_subject=False, has_cluster=False),
        ActionPage(action="set_job_running", section="jobs", subject_url_name="", has_cluster=False),
        ActionPage(action="delete_job", section="jobs", subject_url_name="", has_cluster=False),
        ActionPage(action="expire_audit", section="audit", subject_url_name="", has_subject=False, has_cluster=False),
    )
}


# Changing what is there is creating it with other settings, from a form that starts at the present ones.
CHANGE_TOPIC = ActionPage(
    action="create_topic",
    section="topics",
    subject_url_name="topic",
    url_name="change_topic",
    require=selectors.topic_head,
    present=topic_settings.settings_on_brokers,
    title=gettext_lazy("Change the settings of a topic"),
)
CHANGE_GROUP = ActionPage(
    action="create_group",
    section="groups",
    subject_url_name="group_settings",
    url_name="change_group",
    require=selectors.group_head,
    present=group_settings.settings_on_brokers,
    title=gettext_lazy("Change the settings of a group"),
)
CHANGE_ALERT_RULE = ActionPage(
    action="set_alert_rule",
    section="alert_rules",
    subject_url_name="",
    url_name="change_alert_rule",
    has_cluster=False,
    title=gettext_lazy("Change a rule for alerts"),
)
CHANGE_ALERT_CHANNEL = ActionPage(
    action="set_alert_channel",
    section="alert_channels",
    subject_url_name="",
    url_name="change_alert_channel",
    has_cluster=False,
    title=gettext_lazy("Change a channel for alerts"),
)

# Where an action on what is there has other words than on something new.
CHANGE_TITLES = {page.action: page.title for page in (CHANGE_TOPIC, CHANGE_GROUP)}


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
