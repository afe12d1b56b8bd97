"""A mail server on a free port that keeps what it takes; this install's mails go there."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass
class MailServer:
    port: int = 0
    answer_to_recipients: str = "250 ok"
    recipients: list[str] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)


@pytest.fixture
def mail_server(settings: Any) -> Iterator[MailServer]:
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
