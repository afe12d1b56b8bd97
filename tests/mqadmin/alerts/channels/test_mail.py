"""Mail through a real SMTP server."""

# ruff: noqa: F811 - a fixture is imported and asked for by the same name

from __future__ import annotations

import email
import email.policy
from typing import Any

import pytest

from mqadmin.alerts.channels import mail
from mqadmin.delivery import NotDelivered
from tests.mqadmin.alerts.channels.test_writing import written
from tests.support.mail_server import MailServer, mail_server  # noqa: F401 - a fixture


def test_all_recipients_get_one_mail(mail_server: MailServer) -> None:
    mail.send(written(language="zh-hans"), ["ann@example.com", "bob@example.com"])
    assert [one.split("<")[1] for one in mail_server.recipients] == ["ann@example.com>", "bob@example.com>"]
    found = email.message_from_bytes(mail_server.texts[0], policy=email.policy.default)
    assert found["Subject"] == "触发 backlog：prod 的 billing"
    assert found["From"] == "mqadmin@example.com"
    assert found["Message-ID"] == "<k-1@mqadmin>"
    assert "https://mq.example.com/clusters/prod/groups/billing/lag/?at=1" in found.get_content()


@pytest.mark.parametrize(("answer", "is_for_good"), [("550 no such user", True), ("451 later", False)])
def test_recipients_whom_the_server_refuses(mail_server: MailServer, answer: str, is_for_good: bool) -> None:
    mail_server.answer_to_recipients = answer
    with pytest.raises(NotDelivered, match="refused all recipients") as caught:
        mail.send(written(), ["ann@example.com"])
    assert caught.value.is_for_good is is_for_good


def test_no_server_that_answers(mail_server: MailServer, settings: Any) -> None:
    settings.EMAIL_PORT = 1
    with pytest.raises(NotDelivered, match="cannot be reached: Connection refused") as caught:
        mail.send(written(), ["ann@example.com"])
    assert not caught.value.is_for_good


def test_no_server_named(settings: Any) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(NotDelivered, match="MQADMIN_MAIL"):
        mail.send(written(), ["ann@example.com"])
