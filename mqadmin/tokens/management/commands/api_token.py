"""`manage.py api_token create|revoke|list`: tokens from the command line, through the same actions as the pages."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError

from mqadmin.action_runs import runner
from mqadmin.action_runs.runs import Result
from mqadmin.audit.models import Outcome
from mqadmin.people.caller import Caller, Way
from mqadmin.people.roles import Role
from mqadmin.tokens import create_token, revoke_token
from mqadmin.tokens.selectors import tokens_of


class Command(BaseCommand):
    help = "Creates, revokes or lists the API tokens of a person. A new token's secret is printed once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("verb", choices=["create", "revoke", "list"])
        parser.add_argument("person")
        parser.add_argument("token", nargs="?", help="the token's name")
        parser.add_argument("--role", choices=[role.value for role in Role], default=Role.VIEWER.value)
        parser.add_argument("--cluster", action="append", default=[], help="several times for several; none: all")
        parser.add_argument("--days", type=int, default=create_token.DAYS_DEFAULT)

    def handle(self, *args: Any, **given: Any) -> None:
        person = get_user_model().objects.filter(username=given["person"]).first()
        if person is None:
            raise CommandError(f"there is no account named {given['person']}")
        if given["verb"] == "list":
            for token in tokens_of(person):
                used = token.last_used_at.isoformat(timespec="seconds") if token.last_used_at else "never"
                clusters = ", ".join(token.clusters) or "all clusters"
                self.stdout.write(
                    f"{token.name}  {token.role}  {clusters}  ends {token.expires_at:%Y-%m-%d}  used {used}"
                )
            return
        if not given["token"]:
            raise CommandError("name the token")
        values: dict[str, Any] = {"token": given["token"], "person": given["person"]}
        action = revoke_token.DECLARATION.name
        if given["verb"] == "create":
            action = create_token.DECLARATION.name
            values |= {"role": given["role"], "clusters": given["cluster"], "days": given["days"]}
        result = runner.run(Caller(person=person, way=Way.COMMAND), action, "", values)
        if not isinstance(result, Result) or result.outcome != Outcome.DONE:
            raise CommandError(getattr(result, "reason", "") or "it was not carried out")
        self.stdout.write(result.items[0].secret or "revoked")
