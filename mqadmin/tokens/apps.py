from __future__ import annotations

from django.apps import AppConfig


class TokensConfig(AppConfig):
    name = "mqadmin.tokens"
    label = "mq_tokens"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.tokens import create_token, revoke_token  # needs the models

        registry.register(create_token.DECLARATION, revoke_token.DECLARATION)
