"""Addresses of the pages. A name may hold any character but those that end a path."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from mqadmin import path_names  # noqa: F401 - the converter `name`
from mqadmin.console.action_pages import (
    CHANGE_ALERT_CHANNEL,
    CHANGE_ALERT_RULE,
    CHANGE_GROUP,
    CHANGE_TOPIC,
    PAGES,
    ActionPage,
)
from mqadmin.console.views.action import action, action_run
from mqadmin.console.views.alerts import (
    alert_channels,
    alert_deliveries,
    alert_history,
    alert_rules,
    alert_silences,
    alerts,
)
from mqadmin.console.views.audit import audit, audit_entry, audit_export
from mqadmin.console.views.broker import broker, broker_settings
from mqadmin.console.views.cluster import cluster
from mqadmin.console.views.configuration import configuration
from mqadmin.console.views.dead_letter_rules import dead_letter_rules
from mqadmin.console.views.dead_letters import dead_letter, dead_letters, failure
from mqadmin.console.views.flows import flows, topic_flow
from mqadmin.console.views.group import (
    group_dead_letters,
    group_failures,
    group_lag,
    group_rebalances,
    group_retries,
    group_settings,
    health,
    members,
    subscriptions,
)
from mqadmin.console.views.groups import groups
from mqadmin.console.views.jobs import jobs
from mqadmin.console.views.language import language
from mqadmin.console.views.log_in import LogIn, account_inactive, sso_callback, sso_log_in
from mqadmin.console.views.mailed_report import mailed_report
from mqadmin.console.views.many import many, many_runs
from mqadmin.console.views.mend import mend
from mqadmin.console.views.outbox import outbox
from mqadmin.console.views.overview import overview
from mqadmin.console.views.patch_failure import patch_failure
from mqadmin.console.views.people import people, person
from mqadmin.console.views.rebalances import rebalances
from mqadmin.console.views.replay_files import replay_file, replay_files
from mqadmin.console.views.replays import replay, replay_by_number, replays
from mqadmin.console.views.reports import day_report, day_report_file, group_day, period_file, reports
from mqadmin.console.views.theme import theme
from mqadmin.console.views.tokens import tokens
from mqadmin.console.views.topics import producers, topic, topics
from mqadmin.console.views.workers import workers


def action_path(route: str, name: str) -> URLPattern:
    """Returns the address of the page of the action of that name."""
    return page_path(route, PAGES[name])


def page_path(route: str, page: ActionPage) -> URLPattern:
    """Returns the address of a page that runs an action."""
    return path(route, action, {"page": page}, name=page.address_name)


urlpatterns = [
    path("", overview, name="overview"),
    path("login/", LogIn.as_view(), name="login"),
    # Names under which django-allauth looks for pages.
    path("login/", LogIn.as_view(), name="account_login"),
    path("login/inactive/", account_inactive, name="account_inactive"),
    path("login/<slug:provider_id>/login/", sso_log_in, name="openid_connect_login"),
    path("login/<slug:provider_id>/login/callback/", sso_callback, name="openid_connect_callback"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("theme/", theme, name="theme"),
    path("language/", language, name="language"),
    path("clusters/<slug:cluster>/", cluster, name="cluster"),
    action_path("add-cluster/", "add_cluster"),
    action_path("clusters/<slug:name>/settings/", "change_cluster"),
    action_path("clusters/<slug:name>/remove/", "remove_cluster"),
    action_path("clusters/<slug:cluster>/brokers/<name:broker>/configuration/", "change_broker_config"),
    action_path("clusters/<slug:cluster>/brokers/<name:broker>/writing/", "set_broker_write_permission"),
    path("clusters/<slug:cluster>/brokers/<name:broker>/settings/", broker_settings, name="broker_settings"),
    path("clusters/<slug:cluster>/brokers/<name:broker>/", broker, name="broker"),
    path("clusters/<slug:cluster>/configuration/", configuration, name="configuration"),
    path("clusters/<slug:cluster>/change-topics/", many, {"kind": "topic"}, name="many_topics"),
    path("clusters/<slug:cluster>/change-groups/", many, {"kind": "group"}, name="many_groups"),
    path("clusters/<slug:cluster>/topics/", topics, name="topics"),
    action_path("clusters/<slug:cluster>/create-topic/", "create_topic"),
    action_path("clusters/<slug:cluster>/topics/<name:topic>/delete/", "delete_topic"),
    action_path("clusters/<slug:cluster>/topics/<name:topic>/permission/", "set_topic_permission"),
    action_path("clusters/<slug:cluster>/topics/<name:topic>/describe/", "describe_topic"),
    page_path("clusters/<slug:cluster>/topics/<name:topic>/change/", CHANGE_TOPIC),
    path("clusters/<slug:cluster>/flows/", flows, name="flows"),
    path("clusters/<slug:cluster>/topics/<name:topic>/flow/", topic_flow, name="topic_flow"),
    path("clusters/<slug:cluster>/topics/<name:topic>/producers/", producers, name="topic_producers"),
    path("clusters/<slug:cluster>/topics/<name:topic>/", topic, name="topic"),
    path("clusters/<slug:cluster>/groups/", groups, name="groups"),
    action_path("clusters/<slug:cluster>/create-group/", "create_group"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/consumption/", "set_group_consumption"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/delete/", "delete_group"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/describe/", "describe_group"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/objective/", "set_objective"),
    page_path("clusters/<slug:cluster>/groups/<name:group>/change/", CHANGE_GROUP),
    path("clusters/<slug:cluster>/groups/<name:group>/settings/", group_settings, name="group_settings"),
    path("clusters/<slug:cluster>/groups/<name:group>/lag/", group_lag, name="group_lag"),
    path("clusters/<slug:cluster>/groups/<name:group>/members/", members, name="group_members"),
    path("clusters/<slug:cluster>/groups/<name:group>/subscriptions/", subscriptions, name="group_subscriptions"),
    path("clusters/<slug:cluster>/groups/<name:group>/rebalances/", group_rebalances, name="group_rebalances"),
    path("clusters/<slug:cluster>/groups/<name:group>/failures/", group_failures, name="group_failures"),
    path("clusters/<slug:cluster>/groups/<name:group>/retries/", group_retries, name="group_retries"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/deadletters/replay/", "start_replay"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/deadletters/archive/", "archive_dead_letters"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/deadletters/restore/", "restore_dead_letters"),
    path("clusters/<slug:cluster>/groups/<name:group>/deadletters/", group_dead_letters, name="group_dead_letters"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/instances/", "set_wanted_instances"),
    action_path("clusters/<slug:cluster>/groups/<name:group>/instances/running/", "set_instances_running"),
    path("clusters/<slug:cluster>/groups/<name:group>/", health, name="group"),
    path("clusters/<slug:cluster>/deadletters/", dead_letters, name="dead_letters"),
    path("clusters/<slug:cluster>/deadletters/rules/", dead_letter_rules, name="dead_letter_rules"),
    action_path("clusters/<slug:cluster>/deadletters/rules/make/", "make_rule"),
    action_path("clusters/<slug:cluster>/deadletters/rules/<name:rule>/running/", "set_rule_running"),
    action_path("clusters/<slug:cluster>/deadletters/rules/<name:rule>/delete/", "delete_rule"),
    action_path("clusters/<slug:cluster>/deadletters/failures/<int:failure>/archive/", "archive_failure"),
    action_path("clusters/<slug:cluster>/deadletters/failures/<int:failure>/restore/", "restore_failure"),
    action_path("clusters/<slug:cluster>/deadletters/failures/<int:failure>/describe/", "describe_failure"),
    action_path("clusters/<slug:cluster>/deadletters/<int:message>/archive/", "archive_dead_letter"),
    action_path("clusters/<slug:cluster>/deadletters/<int:message>/restore/", "restore_dead_letter"),
    path("clusters/<slug:cluster>/deadletters/failures/<int:failure>/patch/", patch_failure, name="patch_dead_letters"),
    path("clusters/<slug:cluster>/deadletters/failures/<int:failure>/", failure, name="failure"),
    path("clusters/<slug:cluster>/deadletters/<int:message>/", dead_letter, name="dead_letter"),
    path("clusters/<slug:cluster>/deadletters/<int:message>/mend/", mend, name="mend_dead_letter"),
    action_path("clusters/<slug:cluster>/deadletters/<int:message>/discard-mend/", "discard_mend"),
    path("clusters/<slug:cluster>/replays/", replays, name="replays"),
    path("clusters/<slug:cluster>/replays/files/", replay_files, name="replay_files"),
    path("clusters/<slug:cluster>/replays/files/<int:file>/", replay_file, name="replay_file"),
    action_path("clusters/<slug:cluster>/replays/files/<int:file>/delete/", "delete_replay_file"),
    action_path("clusters/<slug:cluster>/replays/<name:replay>/approve/", "approve_replay"),
    action_path("clusters/<slug:cluster>/replays/<name:replay>/refuse/", "refuse_replay"),
    action_path("clusters/<slug:cluster>/replays/<name:replay>/pause/", "pause_replay"),
    action_path("clusters/<slug:cluster>/replays/<name:replay>/resume/", "resume_replay"),
    action_path("clusters/<slug:cluster>/replays/<name:replay>/cancel/", "cancel_replay"),
    action_path("clusters/<slug:cluster>/replays/<name:replay>/rate/", "set_replay_rate"),
    path("clusters/<slug:cluster>/replays/<name:replay>/", replay, name="replay"),
    path("replays/<int:number>/", replay_by_number, name="replay_by_number"),
    path("clusters/<slug:cluster>/reports/", reports, name="reports"),
    action_path("clusters/<slug:cluster>/make-report/", "make_report"),
    action_path("clusters/<slug:cluster>/report-mail/<slug:language>/", "set_report_mail"),
    path("mailed-reports/<str:token>/", mailed_report, name="mailed_report"),
    path("clusters/<slug:cluster>/reports/<str:day>/groups.parquet", day_report_file, name="day_report_file"),
    path("clusters/<slug:cluster>/reports/<str:day>/period.parquet", period_file, name="period_file"),
    path("clusters/<slug:cluster>/reports/<str:day>/groups/<name:group>/", group_day, name="group_day"),
    path("clusters/<slug:cluster>/reports/<str:day>/", day_report, name="day_report"),
    path("clusters/<slug:cluster>/rebalances/", rebalances, name="rebalances"),
    path("alerts/", alerts, name="alerts"),
    path("alerts/history/", alert_history, name="alert_history"),
    path("alerts/rules/", alert_rules, name="alert_rules"),
    action_path("alerts/rules/set/", "set_alert_rule"),
    page_path("alerts/rules/<name:rule>/change/", CHANGE_ALERT_RULE),
    action_path("alerts/rules/<name:rule>/running/", "set_alert_rule_running"),
    action_path("alerts/rules/<name:rule>/delete/", "delete_alert_rule"),
    path("alerts/channels/", alert_channels, name="alert_channels"),
    action_path("alerts/channels/set/", "set_alert_channel"),
    page_path("alerts/channels/<name:channel>/change/", CHANGE_ALERT_CHANNEL),
    action_path("alerts/channels/<name:channel>/test/", "send_test_alert"),
    action_path("alerts/channels/<name:channel>/delete/", "delete_alert_channel"),
    path("alerts/silences/", alert_silences, name="alert_silences"),
    path("alerts/deliveries/", alert_deliveries, name="alert_deliveries"),
    action_path("clusters/<slug:cluster>/alerts/<int:alert>/acknowledge/", "acknowledge_alert"),
    action_path("clusters/<slug:cluster>/add-silence/", "add_silence"),
    action_path("clusters/<slug:cluster>/silences/<name:silence>/end/", "end_silence"),
    path("tokens/", tokens, name="tokens"),
    action_path("tokens/create/", "create_token"),
    action_path("tokens/<name:token>/revoke/", "revoke_token"),
    path("actions/together/<uuid:batch>/", many_runs, name="many_runs"),
    path("actions/<uuid:run>/", action_run, name="action_run"),
    path("people/", people, name="people"),
    action_path("people/add/", "add_person"),
    action_path("people/<name:person>/role/", "give_role"),
    action_path("people/<name:person>/active/", "set_person_active"),
    action_path("people/<name:person>/password/", "new_password"),
    action_path("people/<name:person>/log-ins/", "end_log_ins"),
    path("people/<name:person>/", person, name="person"),
    action_path("read-only/<slug:of>/", "set_read_only"),
    path("workers/", workers, name="workers"),
    action_path("workers/<name:worker>/draining/", "set_worker_draining"),
    path("outbox/", outbox, name="outbox"),
    action_path("outbox/<name:message>/again/", "send_outbox_again"),
    path("jobs/", jobs, name="jobs"),
    action_path("jobs/make/", "make_job"),
    action_path("jobs/<name:job>/running/", "set_job_running"),
    action_path("jobs/<name:job>/delete/", "delete_job"),
    path("audit/", audit, name="audit"),
    path("audit/export.jsonl", audit_export, name="audit_export"),
    action_path("audit/expire/", "expire_audit"),
    path("audit/<int:number>/", audit_entry, name="audit_entry"),
]
