"""The tree of `/api/v1/`: that of the pages, without a "/" at the end."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.urls import path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView

from mqadmin import path_names  # noqa: F401 - the converter `name`
from mqadmin.api.views.actions import (
    ClusterActions,
    InstallationActions,
    PreviewAction,
    RunAction,
    RunDetail,
    RunsTogether,
)
from mqadmin.api.views.alerts import AlertChannels, AlertDeliveries, AlertRules, Alerts, AlertSilences
from mqadmin.api.views.audit import Audit, AuditCheck, AuditEntryDetail
from mqadmin.api.views.brokers import BrokerDetail, Settings
from mqadmin.api.views.clusters import Brokers, ClusterDetail, ClusterLag, Clusters
from mqadmin.api.views.configuration import ConfigurationApply, ConfigurationExport, ConfigurationPlan
from mqadmin.api.views.dead_letter_rules import DeadLetterRules
from mqadmin.api.views.dead_letters import (
    DeadLetterDetail,
    DeadLetterExport,
    DeadLetters,
    FailureBeginning,
    FailureDetail,
    Failures,
    GroupedFailureList,
)
from mqadmin.api.views.description import JsonDescription, PageDescription, YamlDescription
from mqadmin.api.views.events import Events
from mqadmin.api.views.failing import GroupFailures, LatestFailures
from mqadmin.api.views.flows import ClusterFlows, TopicFlows
from mqadmin.api.views.groups import GroupCurve, GroupDetail, GroupLag, GroupQueues, Groups, Members, Subscriptions
from mqadmin.api.views.instances import Instances
from mqadmin.api.views.jobs import JobDetail, Jobs
from mqadmin.api.views.many import PreviewMany, RunMany
from mqadmin.api.views.outbox import Outbox
from mqadmin.api.views.people import LogIns, People, PersonDetail
from mqadmin.api.views.problems import Nothing, ProblemDetail, Problems
from mqadmin.api.views.rebalances import ClusterGaps, ClusterRebalances, GroupChurn, GroupRebalances
from mqadmin.api.views.replay_files import ReplayFileDetail, ReplayFileLines, ReplayFiles
from mqadmin.api.views.replays import ReplayDetail, ReplayEntries, Replays
from mqadmin.api.views.reports import (
    GroupPeriods,
    GroupPeriodsFile,
    GroupReports,
    GroupReportsFile,
    HourReports,
    HourReportsFile,
    QueueReports,
    QueueReportsFile,
    ReportMailRecipients,
    ReportMails,
    ReportRecipients,
    ReportRunDetail,
    ReportRuns,
    Reports,
)
from mqadmin.api.views.retries import Retries, RetriesStanding
from mqadmin.api.views.settings import GroupSettings, TopicSettings
from mqadmin.api.views.subscriptions import Check, Comparison
from mqadmin.api.views.tokens import Tokens
from mqadmin.api.views.topics import TopicDetail, TopicProducers, Topics
from mqadmin.api.views.workers import Workers

CLUSTER = "clusters/<slug:cluster>"
GROUP = f"{CLUSTER}/groups/<name:group>"

app_name = "api"
urlpatterns = [
    path("clusters", Clusters.as_view()),
    path(CLUSTER, ClusterDetail.as_view()),
    path(f"{CLUSTER}/brokers", Brokers.as_view()),
    path(f"{CLUSTER}/brokers/<name:broker>/settings", Settings.as_view()),
    path(f"{CLUSTER}/brokers/<name:broker>", BrokerDetail.as_view()),
    path(f"{CLUSTER}/lag-history", ClusterLag.as_view()),
    path(f"{CLUSTER}/rebalances", ClusterRebalances.as_view()),
    path(f"{CLUSTER}/gaps", ClusterGaps.as_view()),
    path(f"{CLUSTER}/reports", Reports.as_view()),
    path(f"{CLUSTER}/reports/periods/<str:period>", GroupPeriods.as_view()),
    path(f"{CLUSTER}/reports/periods/<str:period>/groups.parquet", GroupPeriodsFile.as_view()),
    path(f"{CLUSTER}/reports/<str:day>", GroupReports.as_view()),
    path(f"{CLUSTER}/reports/<str:day>/groups.parquet", GroupReportsFile.as_view()),
    path(f"{CLUSTER}/reports/<str:day>/queues", QueueReports.as_view()),
    path(f"{CLUSTER}/reports/<str:day>/queues.parquet", QueueReportsFile.as_view()),
    path(f"{CLUSTER}/reports/<str:day>/hours", HourReports.as_view()),
    path(f"{CLUSTER}/reports/<str:day>/hours.parquet", HourReportsFile.as_view()),
    path(f"{CLUSTER}/report-runs", ReportRuns.as_view()),
    path(f"{CLUSTER}/report-runs/<int:run>", ReportRunDetail.as_view()),
    path(f"{CLUSTER}/report-mails", ReportMails.as_view()),
    path(f"{CLUSTER}/report-mails/<str:day>/recipients", ReportMailRecipients.as_view()),
    path(f"{CLUSTER}/report-mail-recipients", ReportRecipients.as_view()),
    path(f"{CLUSTER}/failures", Failures.as_view()),
    path(f"{CLUSTER}/failures/grouped", GroupedFailureList.as_view()),
    path(f"{CLUSTER}/failures/<int:failure>", FailureDetail.as_view()),
    path(f"{CLUSTER}/failures/<int:failure>/beginning", FailureBeginning.as_view()),
    path(f"{CLUSTER}/dead-letters", DeadLetters.as_view()),
    path(f"{CLUSTER}/dead-letters/export", DeadLetterExport.as_view(), name="export_dead_letters"),
    path(f"{CLUSTER}/dead-letters/<int:message>", DeadLetterDetail.as_view()),
    path(f"{CLUSTER}/replays", Replays.as_view()),
    path(f"{CLUSTER}/replays/<int:replay>", ReplayDetail.as_view()),
    path(f"{CLUSTER}/replays/<int:replay>/entries", ReplayEntries.as_view()),
    path(f"{CLUSTER}/replay-files", ReplayFiles.as_view()),
    path(f"{CLUSTER}/replay-files/<int:file>", ReplayFileDetail.as_view()),
    path(f"{CLUSTER}/replay-files/<int:file>/lines", ReplayFileLines.as_view()),
    path(f"{CLUSTER}/dead-letter-rules", DeadLetterRules.as_view()),
    path(f"{CLUSTER}/alerts", Alerts.as_view()),
    path(f"{CLUSTER}/silences", AlertSilences.as_view()),
    path(f"{CLUSTER}/topics", Topics.as_view()),
    path(f"{CLUSTER}/topics/<name:topic>/settings", TopicSettings.as_view()),
    path(f"{CLUSTER}/flows", ClusterFlows.as_view()),
    path(f"{CLUSTER}/topics/<name:topic>/flow", TopicFlows.as_view()),
    path(f"{CLUSTER}/topics/<name:topic>/producers", TopicProducers.as_view()),
    path(f"{CLUSTER}/topics/<name:topic>", TopicDetail.as_view()),
    path(f"{CLUSTER}/groups", Groups.as_view()),
    path(f"{GROUP}/queues", GroupQueues.as_view()),
    path(f"{GROUP}/members", Members.as_view()),
    path(f"{GROUP}/instances", Instances.as_view()),
    path(f"{GROUP}/subscriptions", Subscriptions.as_view()),
    path(f"{GROUP}/subscriptions/comparison", Comparison.as_view()),
    path(f"{GROUP}/subscriptions/check", Check.as_view()),
    path(f"{GROUP}/rebalances", GroupRebalances.as_view()),
    path(f"{GROUP}/churn", GroupChurn.as_view()),
    path(f"{GROUP}/failures", GroupFailures.as_view()),
    path(f"{GROUP}/latest-failures", LatestFailures.as_view()),
    path(f"{GROUP}/retries", Retries.as_view()),
    path(f"{GROUP}/retries/standing", RetriesStanding.as_view()),
    path(f"{GROUP}/settings", GroupSettings.as_view()),
    path(f"{GROUP}/lag-history", GroupLag.as_view()),
    path(f"{GROUP}/curve", GroupCurve.as_view()),
    path(GROUP, GroupDetail.as_view()),
    path(f"{CLUSTER}/actions", ClusterActions.as_view()),
    path(f"{CLUSTER}/actions/<slug:action>/preview", PreviewAction.as_view(), name="preview_on_cluster"),
    path(f"{CLUSTER}/actions/<slug:action>/run", RunAction.as_view(), name="run_on_cluster"),
    path(f"{CLUSTER}/actions/<slug:action>/preview-many", PreviewMany.as_view()),
    path(f"{CLUSTER}/actions/<slug:action>/run-many", RunMany.as_view()),
    path(f"{CLUSTER}/configuration", ConfigurationExport.as_view()),
    path(f"{CLUSTER}/configuration/plan", ConfigurationPlan.as_view()),
    path(f"{CLUSTER}/configuration/apply", ConfigurationApply.as_view()),
    path("actions", InstallationActions.as_view()),
    path("actions/<slug:action>/preview", PreviewAction.as_view(), name="preview"),
    path("actions/<slug:action>/run", RunAction.as_view(), name="run"),
    path("runs/<uuid:run>", RunDetail.as_view()),
    path("runs/together/<uuid:batch>", RunsTogether.as_view()),
    path("events", Events.as_view()),
    path("audit", Audit.as_view()),
    path("audit/check", AuditCheck.as_view()),
    path("audit/<int:number>", AuditEntryDetail.as_view()),
    path("people", People.as_view()),
    path("people/<name:person>/log-ins", LogIns.as_view()),
    path("people/<name:person>", PersonDetail.as_view()),
    path("workers", Workers.as_view()),
    path("outbox", Outbox.as_view()),
    path("jobs", Jobs.as_view()),
    path("jobs/<name:job>", JobDetail.as_view()),
    path("alert-rules", AlertRules.as_view()),
    path("alert-channels", AlertChannels.as_view()),
    path("alert-deliveries", AlertDeliveries.as_view()),
    path("tokens", Tokens.as_view()),
    path("problems", Problems.as_view()),
    path("problems/<slug:problem>", ProblemDetail.as_view()),
    path("openapi.json", JsonDescription.as_view(), name="openapi_json"),
    path("openapi.yaml", YamlDescription.as_view()),
    path("docs", login_required(SpectacularSwaggerSplitView.as_view(url_name="api:docs_json")), name="docs"),
    path("docs/openapi.json", PageDescription.as_view(), name="docs_json"),
    re_path(r"", Nothing.as_view()),
]
