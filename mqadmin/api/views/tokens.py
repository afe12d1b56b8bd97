"""`/tokens`: the caller's own. They are made and revoked by the actions `create_token` and `revoke_token`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqadmin.api.listing import ListResource, described
from mqadmin.api.rows import Rows, RowsInMemory
from mqadmin.api.serializers.tokens import TokenSerializer
from mqadmin.tokens.models import ApiToken
from mqadmin.tokens.selectors import tokens_of


@described("list_tokens", "List the caller's tokens")
class Tokens(ListResource):
    """Tokens of the caller's account that are not revoked, by name."""

    row = TokenSerializer

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[ApiToken]:
        return RowsInMemory(tokens_of(self.request.user), lambda token: [token.name])
