"""Mail through a real SMTP server."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from mqadmin.alerts.channels import mail
from mqadmin.delivery import NotDelivered
from tests.mqadmin.alerts.channels.test_writing import written


@dataclass
class MailServer:
    port: int = 0
    answer_to_recipients: str = "250 ok"
    recipients: list[str] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    found = MailServer()

    class Session(socketserver.StreamRequestHandler):
        def say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                word = line[:4].upper()
                if word == "RCPT":
                    found.recipients.append(line)
                    self.say(found.answer_to_recipients)
                elif word == "DATA":
                    self.say("354 go on")
                    lines = []
                    while (one := self.rfile.readline()) != b".\r\n":
                        lines.append(one)
                    found.texts.append(b"".join(lines))
                    self.say("250 taken")
                elif word == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as listening:
        found.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.DEFAULT_FROM_EMAIL = "mqadmin@example.com"
        yield found
        listening.shutdown()
        thread.join()


def test_all_recipients_get_one_mail(server: MailServer) -> None:
    mail.send(written(language="zh-hans"), ["ann@example.com", "bob@example.com"])
    assert [one.split("<")[1] for one in server.recipients] == ["ann@example.com>", "bob@example.com>"]
    found = email.message_from_bytes(server.texts[0], policy=email.policy.default)
    assert found["Subject"] == "触发 backlog：prod 的 billing"
    assert found["From"] == "mqadmin@example.com"
    assert found["Message-ID"] == "<k-1@mqadmin>"
    assert "https://mq.example.com/clusters/prod/groups/billing/lag/?at=1" in found.get_content()


@pytest.mark.parametrize(("answer", "is_for_good"), [("550 no such user", True), ("451 later", False)])
def test_recipients_whom_the_server_refuses(server: MailServer, answer: str, is_for_good: bool) -> None:
    server.answer_to_recipients = answer
    with pytest.raises(NotDelivered, match="refused all recipients") as caught:
        mail.send(written(), ["ann@example.com"])
    assert caught.value.is_for_good is is_for_good


def test_no_server_that_answers(server: MailServer, settings: Any) -> None:
    settings.EMAIL_PORT = 1
    with pytest.raises(NotDelivered, match="cannot be reached: Connection refused") as caught:
        mail.send(written(), ["ann@example.com"])
    assert not caught.value.is_for_good


def test_no_server_named(settings: Any) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(NotDelivered, match="MQADMIN_MAIL"):
        mail.send(written(), ["ann@example.com"])
