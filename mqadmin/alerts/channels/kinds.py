"""The kinds of channels."""

from __future__ import annotations

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy


class ChannelKind(TextChoices):
    MAIL = "mail", gettext_lazy("mail")
    WEBHOOK = "webhook", gettext_lazy("webhook")
    SLACK = "slack", "Slack"
    DINGTALK = "dingtalk", gettext_lazy("DingTalk")
    FEISHU = "feishu", gettext_lazy("Feishu")
    WECOM = "wecom", gettext_lazy("WeCom")
