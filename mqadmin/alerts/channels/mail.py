"""Mail, through the server that this installation names (MQADMIN_MAIL)."""

from __future__ import annotations

import smtplib
from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.utils.translation import gettext_noop

from mqadmin.alerts.messages import Message
from mqadmin.delivery import NotDelivered


def send(message: Message, recipients: Sequence[str]) -> None:
    """Sends one mail to all. Raises NotDelivered."""
    headers = {"Message-ID": f"<{message.document['id']}@mqadmin>", "Auto-Submitted": "auto-generated"}
    subject = " ".join(message.title.split())
    hand_over(EmailMessage(subject, message.text, settings.DEFAULT_FROM_EMAIL, list(recipients), headers=headers))


def hand_over(mail: EmailMessage) -> None:
    """Hands a mail to the server. Raises NotDelivered."""
    if not settings.EMAIL_HOST:
        raise NotDelivered(gettext_noop("no mail server is named: set MQADMIN_MAIL"), is_for_good=True)
    try:
        get_connection().send_messages([mail])
    except smtplib.SMTPRecipientsRefused as error:
        is_for_good = all(code >= 500 for code, _words in error.recipients.values())
        words = gettext_noop("the mail server refused all recipients")
        raise NotDelivered(words, is_for_good=is_for_good) from error
    except smtplib.SMTPResponseException as error:
        words = gettext_noop("the mail server answered %(code)d")
        raise NotDelivered(words % {"code": error.smtp_code}) from error
    except (OSError, smtplib.SMTPException) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        words = gettext_noop("the mail server cannot be reached: %(reason)s")
        raise NotDelivered(words % {"reason": reason}) from error
