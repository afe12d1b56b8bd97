"""Makes the first person who can log in, when there is none."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import transaction

NAME = "admin"
# 15 random bytes are 20 characters that a person can still type.
PASSWORD_BYTES = 15


class Command(BaseCommand):
    help = "Creates the user 'admin' with a generated password and prints it, once: only when there is no user yet."

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model().objects
        with transaction.atomic():
            if users.exists():
                return
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            users.create_superuser(username=NAME, email="", password=password)
        self.stdout.write(f"log in as {NAME} with the password {password} (it is not shown again)")
