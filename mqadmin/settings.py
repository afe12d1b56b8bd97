"""Settings of the project. What differs between installs comes from the environment; `environment.py` reads it.

MQADMIN_DATA       folder of all embedded state (./var)
DATABASE_URL       PostgreSQL instead of the SQLite file in that folder
REDIS_URL          Redis for Celery and live pages (the private one that `manage.py up` starts)
MQADMIN_WEB        where the console listens (127.0.0.1:8000)
MQADMIN_INSTANCES  consumer instances that the loops worker can hold at once (8)
MQADMIN_FORKS      no where apps of MQADMIN_APPS cannot be forked: `manage.py up` then loads them in each process (yes)
MQADMIN_NAMESRV    name servers of the default cluster (127.0.0.1:9876, our own broker's)
MQADMIN_CLUSTERS   further clusters for listeners and sends: "payments=host:port;host:port, stock=host:port"
MQADMIN_APPS       Django apps with listeners, comma-separated
MQADMIN_HOSTS      further host names under which the console may be reached, comma-separated
MQADMIN_MASKED     which roles see no message bodies of which topics: "viewer:*, operator:payments*" (nothing is hidden)
MQADMIN_DEAD_LETTER_DAYS      for how long the index keeps dead letters, whatever the brokers keep (90)
MQADMIN_DEAD_LETTER_BODY_KIB  the largest body that it keeps (64)
MQADMIN_REPLAY_APPROVAL  which replays wait for a second person: off, mended (of what was mended), all (off)
MQADMIN_TIME_ZONE  in which the hours of rules for dead letters are: "Europe/Berlin" (UTC)
MQADMIN_URL        where people reach the console, for links in alerts and mails (http:// and MQADMIN_WEB)
MQADMIN_MAIL       mail server: "smtp+starttls://user:password@host:587", smtp:// or smtps:// (no mail)
MQADMIN_MAIL_FROM  the sender of mails (mqadmin@localhost)
MQADMIN_ALERT_NETWORKS  to which alerts are posted though they are local: "127.0.0.0/8" (none)
MQADMIN_HISTORY_DAYS          for how many days the history of lag is kept (400)
SPARK_MASTER       where reports are computed: a Spark cluster instead of this machine (local[*])
MQADMIN_OIDC_URL   issuer of single sign-on by OpenID Connect; further: MQADMIN_OIDC_ID and MQADMIN_OIDC_SECRET that it
                   gave, MQADMIN_OIDC_NAME on the log-in page (its host), MQADMIN_OIDC_ROLE of newcomers (none)
MQADMIN_LOG_LEVEL  what the processes say: debug, info, warning, error (info)
MQADMIN_LOG_LINES  "json" for an object a line; "short" where a program writes time and name before each ("full")
MQADMIN_HTTPS      1 where people reach the console by HTTPS alone, through a proxy: secure cookies, HSTS, redirects
MQADMIN_METRICS_TOKEN  what /metrics is read with from elsewhere; without it, this machine alone reads them
MQADMIN_DEBUG      1 shows errors in the browser; never on a machine that others reach
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from csp.constants import NONE, SELF

from mqadmin import environment
from mqadmin.data_folder import open_data_folder, secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
# In a checkout templates and static files lie at its root, in an installed wheel within the package.
_IS_CHECKOUT = (BASE_DIR / "templates").is_dir()
_FILES = BASE_DIR if _IS_CHECKOUT else BASE_DIR / "mqadmin"

LOG_LINES = ("full", "short", "json")

# What this install is

MQADMIN_DATA = open_data_folder(
    Path(os.environ.get("MQADMIN_DATA", (BASE_DIR if _IS_CHECKOUT else Path.cwd()) / "var"))
)
MQADMIN_WEB = os.environ.get("MQADMIN_WEB", environment.WEB_DEFAULT)
MQADMIN_INSTANCES = environment.count("MQADMIN_INSTANCES", os.environ.get("MQADMIN_INSTANCES", "8"))
MQADMIN_FORKS = environment.one_of("MQADMIN_FORKS", os.environ.get("MQADMIN_FORKS") or "yes", ("yes", "no")) == "yes"
MQADMIN_NAMESRV = environment.name_servers(os.environ.get("MQADMIN_NAMESRV", "127.0.0.1:9876"))
MQADMIN_CLUSTERS = environment.clusters(os.environ.get("MQADMIN_CLUSTERS", ""))
MQADMIN_DEFAULT_CLUSTER = "local"
CONSUMER_OFFSETS_FOLDER = MQADMIN_DATA / "offsets"
MQADMIN_APPS = environment.apps(os.environ.get("MQADMIN_APPS"))
MQADMIN_LOG_LINES = environment.one_of("MQADMIN_LOG_LINES", os.environ.get("MQADMIN_LOG_LINES") or "full", LOG_LINES)
MQADMIN_METRICS_TOKEN = environment.token("MQADMIN_METRICS_TOKEN", os.environ.get("MQADMIN_METRICS_TOKEN", ""))
REDIS_URL = os.environ.get("REDIS_URL") or environment.default_redis_url(MQADMIN_DATA)

# Alerts

MQADMIN_URL = environment.public_url(os.environ.get("MQADMIN_URL") or f"http://{MQADMIN_WEB}")
MQADMIN_ALERT_NETWORKS = environment.networks(os.environ.get("MQADMIN_ALERT_NETWORKS", ""))
_MAIL = environment.mail(os.environ.get("MQADMIN_MAIL", ""))
EMAIL_HOST = _MAIL["EMAIL_HOST"]
EMAIL_PORT = _MAIL.get("EMAIL_PORT", 25)
EMAIL_HOST_USER = _MAIL.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = _MAIL.get("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = _MAIL.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _MAIL.get("EMAIL_USE_SSL", False)
# As long as a post may take.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = os.environ.get("MQADMIN_MAIL_FROM") or "mqadmin@localhost"

# People

MQADMIN_MASKED = environment.masked(os.environ.get("MQADMIN_MASKED", ""))
MQADMIN_DEAD_LETTER_DAYS = environment.count(
    "MQADMIN_DEAD_LETTER_DAYS", os.environ.get("MQADMIN_DEAD_LETTER_DAYS", "90")
)
MQADMIN_DEAD_LETTER_BODY_KIB = environment.count(
    "MQADMIN_DEAD_LETTER_BODY_KIB", os.environ.get("MQADMIN_DEAD_LETTER_BODY_KIB", "64")
)
MQADMIN_REPLAY_APPROVAL = environment.replay_approval(os.environ.get("MQADMIN_REPLAY_APPROVAL", "off"))
MQADMIN_TIME_ZONE = environment.time_zone(os.environ.get("MQADMIN_TIME_ZONE", "UTC"))
MQADMIN_HISTORY_DAYS = environment.count("MQADMIN_HISTORY_DAYS", os.environ.get("MQADMIN_HISTORY_DAYS", "400"))
SPARK_MASTER = os.environ.get("SPARK_MASTER") or "local[*]"
MQADMIN_OIDC_URL = os.environ.get("MQADMIN_OIDC_URL", "")
MQADMIN_OIDC_NAME = os.environ.get("MQADMIN_OIDC_NAME") or environment.host_of(MQADMIN_OIDC_URL)
MQADMIN_OIDC_ROLE = environment.role("MQADMIN_OIDC_ROLE", os.environ.get("MQADMIN_OIDC_ROLE", ""))
SOCIALACCOUNT_PROVIDERS = environment.openid_connect(
    MQADMIN_OIDC_URL,
    MQADMIN_OIDC_NAME,
    client_id=os.environ.get("MQADMIN_OIDC_ID", ""),
    secret=os.environ.get("MQADMIN_OIDC_SECRET", ""),
)
SOCIALACCOUNT_ADAPTER = "mqadmin.people.single_sign_on.Adapter"
# A form that led to another host would break the content security policy; the state parameter guards the link.
SOCIALACCOUNT_LOGIN_ON_GET = True
ACCOUNT_EMAIL_VERIFICATION = "none"
# Failed log-ins: per address a minute, per name in five minutes.
ACCOUNT_RATE_LIMITS = {"login_failed": "20/m/ip,5/5m/key"}
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "mqadmin.people.access.ClusterRoleBackend",
]

# Security

SECRET_KEY = secret_key(MQADMIN_DATA)
DEBUG = os.environ.get("MQADMIN_DEBUG") == "1"
ALLOWED_HOSTS = environment.allowed_hosts(MQADMIN_WEB, environment.words(os.environ.get("MQADMIN_HOSTS")))
# A proxy that speaks HTTPS says so by X-Forwarded-Proto, which uvicorn reads (mqadmin/web.py).
IS_HTTPS_ONLY = os.environ.get("MQADMIN_HTTPS") == "1"
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS_ONLY
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS_ONLY else 0
# Other hosts of the domain, and browsers' built-in lists, are not this console's to decide about.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_NAME = "mqadmin_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "mqadmin_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# Applications

INSTALLED_APPS = [
    "whitenoise.runserver_nostatic",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    # It loads an HTTP client, which takes 5 MB of each process.
    *(["allauth.socialaccount.providers.openid_connect"] if MQADMIN_OIDC_URL else []),
    "channels",
    "csp",
    "django_celery_beat",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "mqadmin",
    "mqadmin.clusters",
    "mqadmin.observing",
    "mqadmin.objectives",
    "mqadmin.lag",
    "mqadmin.rebalances",
    "mqadmin.deadletters",
    "mqadmin.retries",
    "mqadmin.reports",
    "mqadmin.mending",
    "mqadmin.replay_files",
    "mqadmin.replays",
    "mqadmin.deadletter_rules",
    "mqadmin.subscriptions",
    "mqadmin.events",
    "mqadmin.alerts",
    "mqadmin.audit",
    "mqadmin.action_runs",
    "mqadmin.people",
    "mqadmin.jobs",
    "mqadmin.hosting",
    "mqadmin.brokers",
    "mqadmin.cluster_settings",
    "mqadmin.groups",
    "mqadmin.topics",
    "mqadmin.metrics",
    "mqadmin.ownership",
    "mqadmin.producers",
    "mqadmin.tokens",
    "mqadmin.live",
    "mqadmin.console",
    "mqadmin.api",
    "consumer",
    "broker",
    *MQADMIN_APPS,
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "mqadmin.people.language.PersonLocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "mqadmin.people.cluster_access.ClusterAccessMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "mqadmin.urls"
ASGI_APPLICATION = "mqadmin.asgi.application"
# A form of a hundred topics fits several times; what is larger is answered with 400 before anything reads it.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [_FILES / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Data

DATABASES = {"default": environment.database(os.environ.get("DATABASE_URL"), MQADMIN_DATA)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
# What web processes and workers must agree on; a Redis that is away is noticed at once and costs only sharing.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "mqadmin",
        "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2},
    }
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "mqadmin"},
    }
}

# REST. Its description is generated from the code; docs/openapi.yaml is what it was when it was last accepted.

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "mqadmin.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["mqadmin.api.throttles.PerMinute"],
    "DEFAULT_PARSER_CLASSES": ["mqadmin.api.parsers.JsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "mqadmin.api.problems.handle",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "mqadmin",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "PREPROCESSING_HOOKS": ["mqadmin.api.openapi.addresses_of_the_api"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "mqadmin.api.openapi.add_problems",
    ],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_NAME_OVERRIDES": {
        "DescribedKind": "mqadmin.ownership.models.Described",
        "ClusterKind": "mqadmin.clusters.models.ClusterKind",
        "ClusterState": "mqadmin.clusters.models.ClusterState",
        "TopicKind": "mqadmin.clusters.models.TopicKind",
        "ItemState": "mqadmin.api.serializers.actions.ITEM_STATES",
        "Outcome": "mqadmin.audit.models.Outcome",
        "Role": "mqadmin.api.serializers.tokens.ROLES",
        "Verdict": "mqadmin.clusters.models.Verdict",
        "EventKind": "mqadmin.api.serializers.events.KINDS",
        "RebalanceKind": "mqadmin.rebalances.models.RebalanceKind",
        "RebalanceSource": "mqadmin.rebalances.models.RebalanceSource",
        "FindingKind": "mqadmin.api.serializers.subscriptions.FINDING_KINDS",
        "AlertDeliveryStateEnum": "mqadmin.delivery.DeliveryState",
        "ReplayEntryStateEnum": "mqadmin.api.serializers.replays.ENTRY_STATES",
        "ReportRunState": "mqadmin.reports.models.RunState",
    },
    "PATH_CONVERTER_OVERRIDES": {"name": {"type": "string"}},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "/static/favicon.svg",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "docExpansion": "none", "validatorUrl": None},
}

# Celery. Acknowledged early and never prefetched: most tasks here are long, and a lease row says who runs what.

CELERY_BROKER_URL = environment.celery_url(REDIS_URL)
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# However long Redis is away, the workers wait for it.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True
# How long, in seconds, a process of a pool may take from its fork until it is ready; then Celery kills it and starts
# another. Celery's own 4 s are few on a machine on which everything starts at once: the next one would do no better.
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60.0
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# What a listener prints is its own text: Celery would make three warnings of one print().
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_TASK_DEFAULT_QUEUE = "jobs"
CELERY_TASK_ROUTES = {
    "broker.tasks.*": {"queue": "scheduler"},
    "consumer.tasks.host_instance": {"queue": "loops"},
    "consumer.tasks.*": {"queue": "jobs"},
    "mqadmin.observing.tasks.follow_clusters": {"queue": "following"},
    "mqadmin.reports.tasks.*": {"queue": "reports"},
    "mqadmin.*": {"queue": "jobs"},
}
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"

# Language and time

LANGUAGE_CODE = "en"
# Each under its own name, for people who read no other.
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LANGUAGE_COOKIE_NAME = "mqadmin_language"
LANGUAGE_COOKIE_AGE = 365 * 86_400
LOCALE_PATHS = [BASE_DIR / "mqadmin" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# Static files: whitenoise serves them from where they lie, so nothing has to be collected.

STATIC_URL = "/static/"
STATICFILES_DIRS: list[Path | tuple[str, Path]] = [_FILES / "static"]
# Plotly's script, for pages with charts, where reports are installed.
if (_PLOTLY := importlib.util.find_spec("plotly")) is not None and _PLOTLY.origin is not None:
    STATICFILES_DIRS.append(("plotly", Path(_PLOTLY.origin).parent / "package_data"))
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "full": {"format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s"},
        "short": {"()": "mqadmin.log_lines.ShortLines"},
        "json": {"()": "mqadmin.log_lines.JsonLines"},
    },
    "filters": {"redis_outage": {"()": "mqadmin.redis_outage.RedisOutage", "url": REDIS_URL}},
    "handlers": {
        "stderr": {
            "class": "mqadmin.log_lines.ForkSafeStreamHandler",
            "filters": ["redis_outage"],
            "formatter": MQADMIN_LOG_LINES,
        }
    },
    # Each of Celery's short tasks would be two lines, several times a second; the last two say where Redis is, and what
    # prefetching, which is off, does about a lost connection.
    "loggers": {
        f"celery.{name}": {"level": "WARNING"}
        for name in (
            "worker.strategy",
            "app.trace",
            "worker.request",
            "worker.consumer.connection",
            "worker.consumer.consumer",
        )
    }
    # Each of its connections to Spark's JVM would be a line.
    | {"py4j": {"level": "WARNING"}},
    "root": {"handlers": ["stderr"], "level": environment.log_level(os.environ.get("MQADMIN_LOG_LEVEL", "INFO"))},
}
