"""Addresses of the pages. A name may hold any character but those that end a path."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from mqadmin import path_names  # noqa: F401 - the converter `name`
from mqadmin.console import action_pages
from mqadmin.console.views.action import action, action_run
from mqadmin.console.views.audit import audit, audit_entry, audit_export
from mqadmin.console.views.broker import broker
from mqadmin.console.views.cluster import cluster
from mqadmin.console.views.group import group_rebalances, health, members, subscriptions
from mqadmin.console.views.groups import groups
from mqadmin.console.views.jobs import jobs
from mqadmin.console.views.log_in import LogIn, shut_account, sso_callback, sso_log_in
from mqadmin.console.views.overview import overview
from mqadmin.console.views.people import people, person
from mqadmin.console.views.rebalances import rebalances
from mqadmin.console.views.theme import theme
from mqadmin.console.views.tokens import tokens
from mqadmin.console.views.topics import topic, topics

urlpatterns = [
    path("", overview, name="overview"),
    path("login/", LogIn.as_view(), name="login"),
    # Names under which django-allauth looks for pages.
    path("login/", LogIn.as_view(), name="account_login"),
    path("login/shut/", shut_account, name="account_inactive"),
    path("login/<slug:provider_id>/login/", sso_log_in, name="openid_connect_login"),
    path("login/<slug:provider_id>/login/callback/", sso_callback, name="openid_connect_callback"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("theme/", theme, name="theme"),
    path("clusters/<slug:cluster>/", cluster, name="cluster"),
    path("add-cluster/", action, {"page": action_pages.ADD_CLUSTER}, name="add_cluster"),
    path("clusters/<slug:name>/settings/", action, {"page": action_pages.CHANGE_CLUSTER}, name="change_cluster"),
    path("clusters/<slug:name>/remove/", action, {"page": action_pages.REMOVE_CLUSTER}, name="remove_cluster"),
    path(
        "clusters/<slug:cluster>/brokers/<name:broker>/configuration/",
        action,
        {"page": action_pages.CHANGE_BROKER_CONFIG},
        name="change_broker_config",
    ),
    path(
        "clusters/<slug:cluster>/brokers/<name:broker>/writing/",
        action,
        {"page": action_pages.SET_BROKER_WRITE_PERMISSION},
        name="set_broker_write_permission",
    ),
    path("clusters/<slug:cluster>/brokers/<name:broker>/", broker, name="broker"),
    path("clusters/<slug:cluster>/topics/", topics, name="topics"),
    path(
        "clusters/<slug:cluster>/create-topic/",
        action,
        {"page": action_pages.CREATE_TOPIC},
        name="create_topic",
    ),
    path(
        "clusters/<slug:cluster>/topics/<name:topic>/delete/",
        action,
        {"page": action_pages.DELETE_TOPIC},
        name="delete_topic",
    ),
    path(
        "clusters/<slug:cluster>/topics/<name:topic>/permission/",
        action,
        {"page": action_pages.SET_TOPIC_PERMISSION},
        name="set_topic_permission",
    ),
    path(
        "clusters/<slug:cluster>/topics/<name:topic>/describe/",
        action,
        {"page": action_pages.DESCRIBE_TOPIC},
        name="describe_topic",
    ),
    path("clusters/<slug:cluster>/topics/<name:topic>/", topic, name="topic"),
    path("clusters/<slug:cluster>/groups/", groups, name="groups"),
    path(
        "clusters/<slug:cluster>/create-group/",
        action,
        {"page": action_pages.CREATE_GROUP},
        name="create_group",
    ),
    path(
        "clusters/<slug:cluster>/groups/<name:group>/consumption/",
        action,
        {"page": action_pages.SET_GROUP_CONSUMPTION},
        name="set_group_consumption",
    ),
    path(
        "clusters/<slug:cluster>/groups/<name:group>/delete/",
        action,
        {"page": action_pages.DELETE_GROUP},
        name="delete_group",
    ),
    path(
        "clusters/<slug:cluster>/groups/<name:group>/describe/",
        action,
        {"page": action_pages.DESCRIBE_GROUP},
        name="describe_group",
    ),
    path("clusters/<slug:cluster>/groups/<name:group>/members/", members, name="group_members"),
    path("clusters/<slug:cluster>/groups/<name:group>/subscriptions/", subscriptions, name="group_subscriptions"),
    path("clusters/<slug:cluster>/groups/<name:group>/rebalances/", group_rebalances, name="group_rebalances"),
    path(
        "clusters/<slug:cluster>/groups/<name:group>/instances/",
        action,
        {"page": action_pages.SET_WANTED_INSTANCES},
        name="group_instances",
    ),
    path("clusters/<slug:cluster>/groups/<name:group>/", health, name="group"),
    path("clusters/<slug:cluster>/rebalances/", rebalances, name="rebalances"),
    path("tokens/", tokens, name="tokens"),
    path("tokens/create/", action, {"page": action_pages.CREATE_TOKEN}, name="create_token"),
    path("tokens/<name:token>/revoke/", action, {"page": action_pages.REVOKE_TOKEN}, name="revoke_token"),
    path("actions/<uuid:run>/", action_run, name="action_run"),
    path("people/", people, name="people"),
    path("people/add/", action, {"page": action_pages.ADD_PERSON}, name="add_person"),
    path("people/<name:person>/role/", action, {"page": action_pages.GIVE_ROLE}, name="give_role"),
    path("people/<name:person>/active/", action, {"page": action_pages.SET_PERSON_ACTIVE}, name="set_person_active"),
    path("people/<name:person>/log-ins/", action, {"page": action_pages.END_LOG_INS}, name="end_log_ins"),
    path("people/<name:person>/", person, name="person"),
    path("read-only/<slug:of>/", action, {"page": action_pages.SET_READ_ONLY}, name="set_read_only"),
    path("jobs/", jobs, name="jobs"),
    path("jobs/make/", action, {"page": action_pages.MAKE_JOB}, name="make_job"),
    path("jobs/<name:job>/running/", action, {"page": action_pages.SET_JOB_RUNNING}, name="set_job_running"),
    path("jobs/<name:job>/delete/", action, {"page": action_pages.DELETE_JOB}, name="delete_job"),
    path("audit/", audit, name="audit"),
    path("audit/export.jsonl", audit_export, name="audit_export"),
    path("audit/expire/", action, {"page": action_pages.EXPIRE_AUDIT}, name="expire_audit"),
    path("audit/<int:number>/", audit_entry, name="audit_entry"),
]
